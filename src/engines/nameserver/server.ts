// The nameservers: zones from the database, one pair of listeners per address, everything they share made once.
import { isIPv6 } from 'node:net'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Database } from '../../db.ts'
import type { Notifications } from '../../notifications.ts'
import { generatedRecords, generatedTtl, soaOf } from '../../services/zones.ts'
import { createAliases, createResolver, type ResolveAlias } from './alias.ts'
import { createAnswerCache } from './cache.ts'
import { createCookies } from './cookies.ts'
import { type ListenAddress, listenOn } from './listeners.ts'
import { type Addresses, isWithin, type Surroundings } from './lookup.ts'
import { createNameserverMetrics, type NameserverMetrics } from './metrics.ts'
import { createRateLimit, type RateLimitOptions } from './rate-limit.ts'
import { rdataOf } from './rdata.ts'
import { createResponder } from './responder.ts'
import { createSnapshot, type Snapshot } from './snapshot.ts'
import type { TcpLimits } from './tcp.ts'
import type { Transfers } from './transfers.ts'
import { textName, typeNumbers, wireName } from './wire.ts'

export type NameserverOptions = {
  config: Config
  db: Database
  notifications: Notifications
  log: Logger
  /** Left out, the nameserver makes its own. */
  registry?: Registry
  /** How targets of ALIAS records outside the zone are found; left out, by `resolvers`, or else the system's. */
  resolveAlias?: ResolveAlias
  resolvers?: readonly string[]
  /** Texts that a certificate authority expects at a name (`_acme-challenge.example.com`) now. Asked per packet. */
  challenges?(name: string): readonly string[]
  /** Made when the zones are loaded, as it needs them. */
  transfers?(snapshot: Snapshot, surroundings: Surroundings): Transfers & { close(): Promise<void> }
  /** Null answers everyone without limit. */
  rateLimit?: RateLimitOptions | null
  tcp?: Partial<TcpLimits>
}

export type Nameserver = {
  /** Loads the zones, then opens the ports; returns the addresses in the order of the configuration. */
  listen(): Promise<ListenAddress[]>
  /** Null until `listen`. */
  readonly snapshot: Snapshot | null
  metrics: NameserverMetrics
  close(): Promise<void>
}

/** `127.0.0.1:5300` or `[::1]:5300`; a bare address is on port 53. */
export function listenAddress(text: string): ListenAddress {
  const bracketed = /^\[(.+)\](?::(\d+))?$/.exec(text)
  if (bracketed) return { host: bracketed[1]!, port: Number(bracketed[2] ?? 53) }
  if (isIPv6(text)) return { host: text, port: 53 }
  const [host = '', port = '53'] = text.split(':')
  return { host: host || '0.0.0.0', port: Number(port) }
}

export function edgeAddresses(config: Config): Surroundings['edge'] {
  const domain = wireName(config.edge.domain)
  const byType = new Map<number, Addresses>()
  for (const type of ['A', 'AAAA'] as const) {
    const rdatas = config.edge.addresses
      .filter((address) => isIPv6(address) === (type === 'AAAA'))
      .flatMap((address) => rdataOf(type, address) ?? [])
    byType.set(typeNumbers[type], { rdatas, ttl: generatedTtl })
  }
  return (target, type) => (isWithin(target, domain) ? byType.get(type)! : null)
}

export function createNameserver(options: NameserverOptions): Nameserver {
  const { config, db, notifications, log, challenges, rateLimit } = options
  let snapshot: Snapshot | null = null
  const metrics = createNameserverMetrics(
    options.registry,
    () => snapshot?.table.size ?? 0,
    () => snapshot?.ageSeconds() ?? 0,
  )
  const cache = createAnswerCache()
  const aliases = createAliases(options.resolveAlias ?? createResolver(options.resolvers ?? []))
  const cookies = createCookies()
  const limit = rateLimit === null ? null : createRateLimit(rateLimit)
  const surroundings: Surroundings = {
    edge: edgeAddresses(config),
    resolved: aliases.resolved,
    // A label with a dot in it reads like two; only the name that was meant has a challenge.
    challenges: (name) => (challenges && wireName(textName(name)) === name ? challenges(textName(name)) : []),
  }
  const closers: (() => Promise<void>)[] = []

  async function open(
    address: ListenAddress,
    index: number,
    loaded: Snapshot,
    transfers: Transfers | null,
  ): Promise<ListenAddress> {
    const responder = createResponder({
      table: loaded.table,
      cache,
      aliases,
      surroundings,
      cookies,
      rateLimit: limit,
      metrics,
      transfers,
      nsid: config.nameservers[index] ?? config.nameservers[0]!,
      log,
    })
    const opened = await listenOn(address, responder, metrics, log, options.tcp)
    closers.push(opened.close)
    return { host: opened.host, port: opened.port }
  }

  async function close(): Promise<void> {
    for (const closer of closers.splice(0).reverse()) await closer()
  }

  return {
    metrics,
    get snapshot() {
      return snapshot
    },
    async listen() {
      const constants = {
        nameservers: config.nameservers,
        soa: (zone: string) => soaOf(config, zone),
        generated: (records: readonly { name: string; type: string }[]) => generatedRecords(config, records),
      }
      const loaded = await createSnapshot(db, notifications, constants, log)
      snapshot = loaded
      closers.push(loaded.close)
      loaded.onMoved(cache.clear)
      try {
        const transfers = options.transfers?.(loaded, surroundings) ?? null
        if (transfers) closers.push(() => transfers.close())
        const opened: ListenAddress[] = []
        for (const [index, text] of config.nameserverListen.entries()) {
          opened.push(await open(listenAddress(text), index, loaded, transfers))
        }
        return opened
      } catch (error) {
        await close()
        throw error
      }
    },
    close,
  }
}
