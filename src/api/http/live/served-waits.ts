// The answer to a change follows when it is served: of a zone by both nameservers, of production by every edge.
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../../../config.ts'
import { probeSoa } from '../../../dns/soa-probe.ts'
import type { Database } from '../../../platform/database/database.ts'
import { findZone } from '../../../services/dns/index.ts'
import { isServedBy } from '../../../services/production/index.ts'
import { isGone, leavePlace } from '../intake/transport.ts'
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
// Each is a socket or a query for a second at most. All waits share them, so that thousands of waits take as many as these.
const looksAtOnce = 64

type Look = () => Promise<boolean>

type Kind = {
  /** Well within what clients and proxies wait. */
  maxMs: number
  isWanted(request: FastifyRequest): boolean
  /** A change whose answer cannot wait is refused; otherwise it is made, and answered at once. */
  mayRefuse: boolean
  /** After the change; what it returns looks whether it is served by now. */
  begin(request: FastifyRequest): Promise<Look>
}

/** Adds itself to the routes that say so. Nothing of the database is held meanwhile: the change is committed. */
export function useServedWaits(api: FastifyInstance, { db, config, shares, probe = probeSoa }: ServedWaits): void {
  const inTurn = createTurns(looksAtOnce)
  const ends = new Set<AbortController>()
  let closing = false

  const kinds: Record<'Zone-Served' | 'Production-Served', Kind> = {
    'Zone-Served': {
      maxMs: 10_000,
      mayRefuse: true,
      isWanted({ query }) {
        const { wait, dryRun } = query as { wait?: 'served'; dryRun?: boolean }
        return wait === 'served' && !dryRun
      },
      async begin({ actor, params }) {
        const { name, serial } = await findZone(db, actor, (params as { domain: string }).domain)
        return async () => {
          const ask = (address: Config['nameserverListen'][number]) =>
            inTurn(() => (closing ? null : probe(address, name)))
          const found = await Promise.all(config.nameserverListen.map(ask))
          // Serial arithmetic (RFC 1982); the zone may have changed once more.
          return found.every((one) => one !== null && one.serial !== null && ((one.serial - serial) | 0) >= 0)
        }
      },
    },
    'Production-Served': {
      // The server of the deployment may have to be started first.
      maxMs: 30_000,
      mayRefuse: false,
      isWanted: () => true,
      async begin({ actor, params }) {
        return () => inTurn(() => closing || isServedBy(db, actor, params as { project?: string; id?: string }))
      },
    },
  }

  async function untilServed(request: FastifyRequest, { maxMs, begin }: Kind): Promise<boolean> {
    const over = new AbortController()
    const end = () => over.abort()
    await shares.move(request, 'waits', end)
    leavePlace(request)
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
    // Before the change is made: afterwards a wait that is one too many can no longer be refused.
    const expect = async (request: FastifyRequest) => {
      if (kind.mayRefuse && kind.isWanted(request)) shares.expect(request, 'waits')
    }
    route.preHandler = [...(Array.isArray(before) ? before : [before]), expect]
    route.onSend = [
      ...(Array.isArray(after) ? after : [after]),
      async (request, reply) => {
        if (!kind.isWanted(request) || reply.statusCode >= 300 || isGone(request)) return
        // The change is made, so whatever goes wrong with the wait is no reason to say that it failed.
        const served = !closing && (await untilServed(request, kind).catch(() => false))
        reply.header(header, String(served))
      },
    ]
  })
}
