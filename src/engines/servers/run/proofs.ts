// Lets builds prove that their server responds: requests an instance, and a runner reports the result.
import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import { endProof, findProof, wantProof } from '../../../services/instances/index.ts'
import { ServerUnavailable } from '../instance/failures.ts'
import type { Proof } from './servers.ts'

export type Proofs = { prove(deploymentId: string, signal: AbortSignal): Promise<Proof> }

export type ProofsOptions = { db: Database; notifications: Notifications; placementTimeoutMs?: number }

// Longer than it takes to place the instances of a lost runner again.
const defaultPlacementTimeoutMs = 60_000
// In case a notification is lost.
const pollMs = 1_000

/** The proven instance keeps running, so the deployment is served as soon as it is READY. */
export function createProofs({
  db,
  notifications,
  placementTimeoutMs = defaultPlacementTimeoutMs,
}: ProofsOptions): Proofs {
  async function settle(deploymentId: string, signal: AbortSignal): Promise<Proof> {
    const stop = () => endProof(db, deploymentId)
    let unplacedSinceMs: number | null = null
    for (;;) {
      const changed = nextChange(notifications, deploymentId, signal)
      const instance = await findProof(db, deploymentId)
      signal.throwIfAborted()
      if (instance?.state === 'healthy') return { healthy: true, release: async () => {}, stop }
      if (instance?.state === 'unhealthy') return { healthy: false, reason: instance.reason ?? '' }
      if (instance?.state === 'unavailable') throw new ServerUnavailable(instance.reason ?? '')
      // Its runner has shut down and removed it.
      if (!instance) await wantProof(db, deploymentId)
      if (instance?.placed) unplacedSinceMs = null
      else unplacedSinceMs ??= performance.now()
      if (unplacedSinceMs !== null && performance.now() - unplacedSinceMs > placementTimeoutMs) {
        return {
          healthy: false,
          unplaced: true,
          reason: `No runner has taken the server within ${placementTimeoutMs / 1000} s.`,
        }
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
        // If this fails, the instance is removed when the deployment has failed.
        if (!proof?.healthy) await endProof(db, deploymentId).catch(() => {})
      }
    },
  }
}

/** Resolves on the next change of the deployment's instances, after a timeout, or on abort. */
async function nextChange(notifications: Notifications, deploymentId: string, signal: AbortSignal): Promise<void> {
  const changed = new AbortController()
  const off = notifications.on('instance', (subject) => void (subject === deploymentId && changed.abort()))
  const either = AbortSignal.any([signal, changed.signal])
  await delay(pollMs, undefined, { signal: either }).catch(() => {})
  off()
}
