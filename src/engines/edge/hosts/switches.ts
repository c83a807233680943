// Tells the database which deployments this edge shows as production, so that what served before is kept up until then.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import type { Urls } from '../../../platform/http/urls.ts'
import {
  type EdgeNode,
  edgeLeaseMs,
  endEdgeLease,
  endSwitches,
  noteShown,
  renewEdgeLease,
} from '../../../services/production/index.ts'

export type Switches = {
  /** Visitors of the project's production get this deployment from now on. */
  shown(projectId: string, deploymentId: string): void
  close(): Promise<void>
}

export type SwitchesDeps = { db: Database; urls: Urls; edge: EdgeNode; log: Logger; leaseMs?: number }

// A lease outlives some renewals that come late or fail.
const beatsPerLease = 5
// A database that hangs holds up neither the start nor the end of an edge.
const patienceMs = 1_000

/** Whoever switches production once this has resolved waits for this edge, unless the database is away. */
export async function openSwitches(deps: SwitchesDeps): Promise<Switches> {
  const { db, urls, edge, log, leaseMs = edgeLeaseMs } = deps
  let pending = new Map<string, string>()
  let working: Promise<void> | null = null
  let failing = false
  let closed = false

  async function work(): Promise<void> {
    const shown = pending
    pending = new Map()
    try {
      await renewEdgeLease(db, edge, leaseMs)
      if (shown.size > 0) await noteShown(db, edge, shown)
      await endSwitches(db, urls)
      failing = false
    } catch (err) {
      pending = new Map([...shown, ...pending])
      if (!failing) log.warn({ err }, 'the lease of this edge could not be renewed; it goes on')
      failing = true
    }
  }

  /** One at a time, and once more if something came up meanwhile. */
  function beat(): Promise<void> {
    working ??= work().finally(() => {
      working = null
      if (pending.size > 0 && !failing && !closed) void beat()
    })
    return working
  }

  const patient = (work: Promise<void>) => Promise.race([work, delay(patienceMs, undefined, { ref: false })])
  await patient(beat())
  const timer = setInterval(() => void beat(), leaseMs / beatsPerLease)
  timer.unref()
  return {
    shown(projectId, deploymentId) {
      pending.set(projectId, deploymentId)
      if (!closed) void beat()
    },
    async close() {
      closed = true
      clearInterval(timer)
      const end = async () => {
        await working
        await endEdgeLease(db, edge)
      }
      await patient(end().catch((err) => log.warn({ err }, 'the lease of this edge ends by itself')))
    },
  }
}
