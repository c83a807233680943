// Logs a database outage in two lines instead of one per failed request.
import type { FastifyRequest } from 'fastify'
import type { Fault } from '../../../platform/errors.ts'
import type { Deps } from '../deps.ts'

declare module 'fastify' {
  interface FastifyInstance {
    outages: OutageLog
  }
}

export type OutageLog = {
  /** Logs the first request that an outage fails, and counts the rest. */
  record(request: FastifyRequest, fault: Fault): void
  close(): void
}

const checkMs = 1_000

export function createOutageLog({ health, log }: Pick<Deps, 'health' | 'log'>): OutageLog {
  let outage: { sinceMs: number; requests: number; isNew: boolean; timer: NodeJS.Timeout } | null = null

  /** The outage is over once the database accepts writes and no request has failed since the last check. */
  async function check(): Promise<void> {
    if (!outage) return
    outage.isNew = false
    const { checks } = await health.check()
    const isBack = [checks.database, checks.changes].every((check) => (check ?? 'ok') === 'ok')
    if (!outage) return
    if (!isBack || outage.isNew) return void outage.timer.refresh()
    const { sinceMs, requests } = outage
    outage = null
    log.warn({ requests, durationMs: Math.round(performance.now() - sinceMs) }, 'the database is available again')
  }

  return {
    record(request, fault) {
      if (outage) {
        outage.requests++
        outage.isNew = true
        return
      }
      const timer = setTimeout(() => void check(), checkMs).unref()
      outage = { sinceMs: performance.now(), requests: 1, isNew: true, timer }
      log.error({ requestId: request.id, err: fault.cause ?? fault }, fault.code)
    },
    close() {
      clearTimeout(outage?.timer)
      outage = null
    },
  }
}
