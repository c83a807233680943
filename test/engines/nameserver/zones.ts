// Zones, and nameservers that serve them over real sockets, without a database.
import { pino } from 'pino'
import { loadConfig } from '../../../src/config.ts'
import { typeNumbers } from '../../../src/dns/packet/numbers.ts'
import { textName, wireName } from '../../../src/dns/packet/wire-names.ts'
import { type AnswerCache, createAnswerCache } from '../../../src/engines/nameserver/answer/cache.ts'
import { type Cookies, createCookies } from '../../../src/engines/nameserver/answer/cookies.ts'
import { createNameserverMetrics, type NameserverMetrics } from '../../../src/engines/nameserver/answer/metrics.ts'
import { createRateLimit, type RateLimitOptions } from '../../../src/engines/nameserver/answer/rate-limit.ts'
import type { Transfers } from '../../../src/engines/nameserver/answer/transfers.ts'
import { listenOn } from '../../../src/engines/nameserver/serve/listeners.ts'
import { createResponder, type Responder } from '../../../src/engines/nameserver/serve/responder.ts'
import type { TcpLimits } from '../../../src/engines/nameserver/serve/tcp.ts'
import {
  type LookupResult,
  lookup,
  type OutsideAddresses,
  type OwnedSet,
} from '../../../src/engines/nameserver/zones/lookup.ts'
import { createAliases, edgeAddresses } from '../../../src/engines/nameserver/zones/outside.ts'
import { buildZone, type Zone } from '../../../src/engines/nameserver/zones/zone.ts'
import { type ZoneSource, ZoneTable } from '../../../src/engines/nameserver/zones/zone-table.ts'
import { generatedRecords, soaOf } from '../../../src/services/dns/zones/zones.ts'

export const config = loadConfig({
  EDGE_ADDRESSES: '192.0.2.80,2001:db8::80',
  DEPLOYMENT_DOMAIN: 'berth.example',
  NAMESERVERS: 'ns1.berth.example,ns2.berth.example',
})
const silent = pino({ level: 'silent' })

export const constants = {
  nameservers: config.nameservers,
  soa: (zone: string) => soaOf(config, zone),
  generated: (records: readonly { name: string; type: string }[]) => generatedRecords(config, records),
}

/** Records as one line each: `www 300 A 192.0.2.1`; the ttl may be left out. */
export function parseLines(text: string) {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => {
      const [, name, ttl, type, value] = /^(\S+) +(?:(\d+) +)?([A-Z]+\d*) +(.*)$/.exec(line)!
      return { name: name!, ttl: Number(ttl ?? 300), type: type!, value: value! }
    })
}

export function zoneOf(text: string, name = 'example.com'): Zone {
  return buildZone(name, 7, parseLines(text), constants)
}

export const nowhere: OutsideAddresses = { edge: edgeAddresses(config) }

const typeNames = new Map<number, string>(Object.entries(typeNumbers).map(([name, number]) => [number, name]))

function shown(sets: OwnedSet[]): string[] {
  return sets.flatMap(({ owner, set }) =>
    set.rdatas.map(({ head, names, tail }) => {
      const type = typeNames.get(set.type)!
      const plain = type === 'A' ? head.join('.') : type === 'TXT' ? head.subarray(1).toString() : head.toString('hex')
      const data = [plain, ...names.map(textName), ...(tail.length > 0 ? ['…'] : [])].filter((part) => part !== '')
      return `${textName(owner)} ${set.ttl} ${type} ${data.join(' ')}`
    }),
  )
}

export type Shown = { rcode: string; aa: boolean; answer: string[]; authority: string[]; additional: string[] }

/** The answer as text, so that a test reads like a zone file. */
export function ask(
  zone: Zone,
  name: string,
  type: keyof typeof typeNumbers | number,
  around = nowhere,
): Shown & { found: LookupResult } {
  const number = typeof type === 'number' ? type : typeNumbers[type]
  const found = lookup(zone, wireName(name), number, around)
  const rcode = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'][found.rcode]!
  const { answer, authority, additional, authoritative } = found
  return {
    rcode,
    aa: authoritative,
    answer: shown(answer),
    authority: shown(authority),
    additional: shown(additional),
    found,
  }
}

export const negativeSoa = (zone = 'example.com') => [`${zone} 60 SOA ns1.berth.example hostmaster.${zone} …`]

export type ZoneOptions = { account?: string; verified?: boolean; id?: string; serial?: number }

export type Served = {
  port: number
  table: ZoneTable
  cache: AnswerCache<ZoneSource>
  metrics: NameserverMetrics
  responder: Responder
  put(name: string, text: string, options?: ZoneOptions): void
  remove(name: string): void
  /** Sum of a counter of the metrics, over all its labels or those given. */
  metric(name: string, labels?: Record<string, string>): Promise<number>
  stop(): Promise<void>
}

export type ServedOptions = {
  rateLimit?: RateLimitOptions | null
  cookies?: Cookies
  tcp?: Partial<TcpLimits>
  transfers?: Transfers
  nsid?: string
}

export async function serveZones(options: ServedOptions = {}): Promise<Served> {
  const cache = createAnswerCache<ZoneSource>()
  const table = new ZoneTable(constants, cache.clear)
  const metrics = createNameserverMetrics(
    undefined,
    () => table.size,
    () => 0,
  )
  let changed: (names: readonly string[]) => void = () => {}
  const aliases = createAliases((listener) => {
    changed = listener
    return () => {}
  })
  const responder = createResponder({
    table,
    cache,
    aliases,
    outside: nowhere,
    cookies: options.cookies ?? createCookies(),
    rateLimit: options.rateLimit === null ? null : createRateLimit(options.rateLimit),
    metrics,
    transfers: options.transfers ?? null,
    nsid: options.nsid ?? 'ns1.berth.example',
    log: silent,
  })
  const limits = options.tcp && { limits: options.tcp }
  const listeners = await listenOn({ host: '127.0.0.1', port: 0 }, responder, { metrics, log: silent, ...limits })
  let serial = 1
  return {
    port: listeners.port,
    table,
    cache,
    metrics,
    responder,
    put(name, text, { account = 'acc_1', verified = true, id = `dom_${name}`, serial: given } = {}) {
      const records = parseLines(text).map(({ type, ttl, name, value }) => `${type} ${ttl} ${name} ${value}`)
      const state = { name, id, serial: given ?? ++serial, verified, refused: false }
      table.apply([name], [{ ...state, accountId: account, records: records.join('\n') }])
      changed([name])
    },
    remove: (name) => void table.apply([name], []),
    async metric(name, labels = {}) {
      const found = await metrics.registry.getSingleMetric(name)!.get()
      const matches = found.values.filter(({ labels: own }) =>
        Object.entries(labels).every(([key, value]) => (own as Record<string, unknown>)[key] === value),
      )
      return matches.reduce((sum, { value }) => sum + value, 0)
    },
    stop: listeners.close,
  }
}
