// Delays the response to a change until the change is live: a zone on both nameservers, production on every edge.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../../../config.ts'
import { probeSoa } from '../../../dns/soa-probe.ts'
import type { Database } from '../../../platform/database/database.ts'
import { findZone } from '../../../services/dns/index.ts'
import { isServedBy } from '../../../services/production/index.ts'
import { isGone, leaveInFlight } from '../requests/transport.ts'
import type { Shares } from '../shares/shares.ts'
import { createTurns } from './waiting.ts'

export type ServedWaits = {
  db: Database
  config: Pick<Config, 'nameserverListen'>
  shares: Shares
  probe?: typeof probeSoa
}

const delaysMs = [20, 40, 80, 160, 320]
const maxDelayMs = 500
// Each is a socket or a query for at most a second. All waits share them, so thousands of waits cost no more than
// these.
const checksAtOnce = 64

type Check = () => Promise<boolean>

type Kind = {
  /** Well within the timeouts of clients and proxies. */
  maxMs: number
  applies(request: FastifyRequest): boolean
  /** Whether a change is refused if its response can't wait. Otherwise it is made and answered at once. */
  mayRefuse: boolean
  /** Called after the change; returns the function that checks whether it is live. */
  begin(request: FastifyRequest): Promise<Check>
}

/** Applies to routes that set `showsServed`. The change is committed, so waiting holds nothing in the database. */
export function useServedWaits(api: FastifyInstance, { db, config, shares, probe = probeSoa }: ServedWaits): void {
  const inTurn = createTurns(checksAtOnce)
  const ends = new Set<AbortController>()
  let closing = false

  const kinds: Record<'Zone-Served' | 'Production-Served', Kind> = {
    'Zone-Served': {
      maxMs: 10_000,
      mayRefuse: true,
      applies({ query }) {
        const { wait, dryRun } = query as { wait?: 'served'; dryRun?: boolean }
        return wait === 'served' && !dryRun
      },
      async begin({ actor, params }) {
        const { name, serial } = await findZone(db, actor, (params as { domain: string }).domain)
        return async () => {
          const ask = (address: Config['nameserverListen'][number]) =>
            inTurn(() => (closing ? null : probe(address, name)))
          const found = await Promise.all(config.nameserverListen.map(ask))
          // Serial number arithmetic (RFC 1982); the zone may have changed again.
          return found.every((one) => one !== null && one.serial !== null && ((one.serial - serial) | 0) >= 0)
        }
      },
    },
    'Production-Served': {
      // The deployment's server may have to start first.
      maxMs: 30_000,
      mayRefuse: false,
      applies: () => true,
      async begin({ actor, params }) {
        return () => inTurn(() => closing || isServedBy(db, actor, params as { project?: string; id?: string }))
      },
    },
  }

  async function untilServed(request: FastifyRequest, { maxMs, begin }: Kind): Promise<boolean> {
    const over = new AbortController()
    const end = () => over.abort()
    await shares.move(request, 'waits', end)
    leaveInFlight(request)
    ends.add(over)
    const timer = setTimeout(end, maxMs)
    const ended = new Promise<false>((resolve) => over.signal.addEventListener('abort', () => resolve(false)))
    try {
      const isServed = await begin(request)
      for (let round = 0; !over.signal.aborted; round++) {
        if (await Promise.race([isServed(), ended])) return true
        await sleep(delaysMs[round] ?? maxDelayMs, undefined, { signal: over.signal }).catch(() => {})
      }
      return false
    } finally {
      clearTimeout(timer)
      ends.delete(over)
    }
  }

  api.addHook('preClose', async () => {
    closing = true
    for (const one of ends) one.abort()
  })
  api.addHook('onRoute', (route) => {
    const header = route.config?.showsServed
    if (!header) return
    const kind = kinds[header]
    const before = route.preHandler ?? []
    const after = route.onSend ?? []
    // Before the change: afterwards, a wait over the limit can no longer be refused.
    const expect = async (request: FastifyRequest) => {
      if (kind.mayRefuse && kind.applies(request)) shares.expect(request, 'waits')
    }
    route.preHandler = [...(Array.isArray(before) ? before : [before]), expect]
    route.onSend = [
      ...(Array.isArray(after) ? after : [after]),
      async (request, reply) => {
        if (!kind.applies(request) || reply.statusCode >= 300 || isGone(request)) return
        // The change is committed, so a failed wait must not look like a failed change.
        const served = !closing && (await untilServed(request, kind).catch(() => false))
        reply.header(header, String(served))
      },
    ]
  })
}
