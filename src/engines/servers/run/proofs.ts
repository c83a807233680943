// The proof of a build that its server answers: an instance is asked for, and a runner tells how it went.
import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { endProof, findProof, wantProof } from '../../../services/instances/index.ts'
import { ServerUnavailable } from '../instance/failures.ts'
import type { Proof } from './servers.ts'

export type Proofs = { prove(deploymentId: string, signal: AbortSignal): Promise<Proof> }

export type ProofsOptions = { db: Database; notifications: Notifications; placeMs?: number }

// Longer than it takes until the instances of a lost runner are placed anew.
const defaultPlaceMs = 60_000
// Without a notification too.
const lookMs = 1_000

/** The instance that is proved goes on, so a deployment that is READY is served. */
export function createProofs({ db, notifications, placeMs = defaultPlaceMs }: ProofsOptions): Proofs {
  async function settle(deploymentId: string, signal: AbortSignal): Promise<Proof> {
    const stop = () => endProof(db, deploymentId)
    let unplacedSinceMs: number | null = null
    for (;;) {
      const changed = nextChange(notifications, deploymentId, signal)
      const found = await findProof(db, deploymentId)
      signal.throwIfAborted()
      if (found?.state === 'healthy') return { healthy: true, release: async () => {}, stop }
      if (found?.state === 'unhealthy') return { healthy: false, reason: found.reason ?? '' }
      if (found?.state === 'unavailable') throw new ServerUnavailable(found.reason ?? '')
      // Its runner has stopped in order.
      if (!found) await wantProof(db, deploymentId)
      if (found?.placed) unplacedSinceMs = null
      else unplacedSinceMs ??= performance.now()
      if (unplacedSinceMs !== null && performance.now() - unplacedSinceMs > placeMs) {
        return { healthy: false, unplaced: true, reason: `No runner has taken the server within ${placeMs / 1000} s.` }
      }
      await changed
    }
  }

  return {
    async prove(deploymentId, signal) {
      signal.throwIfAborted()
      await wantProof(db, deploymentId)
      let proof: Proof | null = null
      try {
        proof = await settle(deploymentId, signal)
        return proof
      } finally {
        // What cannot be removed now is dropped when the deployment has failed.
        if (!proof?.healthy) await endProof(db, deploymentId).catch(() => {})
      }
    },
  }
}

/** Resolves at the next change of the deployment's instances, after a second, or when the signal is aborted. */
async function nextChange(notifications: Notifications, deploymentId: string, signal: AbortSignal): Promise<void> {
  const changed = new AbortController()
  const off = notifications.on('instance', (subject) => void (subject === deploymentId && changed.abort()))
  const either = AbortSignal.any([signal, changed.signal])
  await delay(lookMs, undefined, { signal: either }).catch(() => {})
  off()
}
