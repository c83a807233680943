// Reports which deployments this edge shows as production, so that the previous ones keep running until then.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import type { Urls } from '../../../platform/http/urls.ts'
import {
  type EdgeNode,
  edgeLeaseMs,
  endEdgeLease,
  endSwitches,
  recordShown,
  renewEdgeLease,
} from '../../../services/production/index.ts'

export type Switches = {
  /** Reports that visitors of the project's production now get this deployment. */
  shown(projectId: string, deploymentId: string): void
  close(): Promise<void>
}

export type SwitchesDeps = { db: Database; urls: Urls; edge: EdgeNode; log: Logger; leaseMs?: number }

// A lease survives a few late or failed renewals.
const renewalsPerLease = 5
// A hanging database must not block startup or shutdown.
const timeoutMs = 1_000

/** Once this resolves, switches of production wait for this edge, unless the database is unavailable. */
export async function openSwitches(deps: SwitchesDeps): Promise<Switches> {
  const { db, urls, edge, log, leaseMs = edgeLeaseMs } = deps
  let pending = new Map<string, string>()
  let working: Promise<void> | null = null
  let failing = false
  let closed = false

  async function renewAndReport(): Promise<void> {
    const shown = pending
    pending = new Map()
    try {
      await renewEdgeLease(db, edge, leaseMs)
      if (shown.size > 0) await recordShown(db, edge, shown)
      await endSwitches(db, urls)
      failing = false
    } catch (err) {
      pending = new Map([...shown, ...pending])
      if (!failing) log.warn({ err }, 'the lease of this edge could not be renewed; it goes on')
      failing = true
    }
  }

  /** Runs one renewal at a time, and another one if more was reported meanwhile. */
  function renew(): Promise<void> {
    working ??= renewAndReport().finally(() => {
      working = null
      if (pending.size > 0 && !failing && !closed) void renew()
    })
    return working
  }

  const withTimeout = (work: Promise<void>) => Promise.race([work, delay(timeoutMs, undefined, { ref: false })])
  await withTimeout(renew())
  const timer = setInterval(() => void renew(), leaseMs / renewalsPerLease)
  timer.unref()
  return {
    shown(projectId, deploymentId) {
      pending.set(projectId, deploymentId)
      if (!closed) void renew()
    },
    async close() {
      closed = true
      clearInterval(timer)
      const end = async () => {
        await working
        await endEdgeLease(db, edge)
      }
      await withTimeout(
        end().catch((err) => log.warn({ err }, 'the lease of this edge could not be ended; it will expire')),
      )
    },
  }
}
