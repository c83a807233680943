// The nameservers: zones from the database, a UDP and a TCP listener per address, and what they share.
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import { type ListenAddress, listenAddress } from '../../dns/listen-address.ts'
import { wireName } from '../../dns/packet/wire-names.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import type { Snapshots } from '../../platform/database/snapshots.ts'
import type { Counted } from '../../platform/observe/tallies.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { generatedRecords, platformZones, soaOf } from '../../services/dns/index.ts'
import { type Rollups, startDnsRollups } from '../../services/traffic/index.ts'
import { type AnswerCache, createAnswerCache } from './answer/cache.ts'
import { createCookies } from './answer/cookies.ts'
import { openZoneKeys, type ZoneKeys } from './answer/keys.ts'
import { createNameserverMetrics, type NameserverMetrics } from './answer/metrics.ts'
import { createRateLimit, type RateLimitOptions, rateLimitMemory } from './answer/rate-limit.ts'
import type { Transfers } from './answer/transfers.ts'
import { createNotices } from './load/notices.ts'
import { createSnapshot, type Snapshot } from './load/snapshot.ts'
import { listenOn } from './serve/listeners.ts'
import { createResponder } from './serve/responder.ts'
import { createSelfQueries } from './serve/self-queries.ts'
import type { TcpLimits } from './serve/tcp.ts'
import { createUpdates, type Updates } from './update/updates.ts'
import { createGenerations, generationMemory } from './workers/generations.ts'
import { loadPacketSockets, type PacketSockets } from './workers/packets.ts'
import { type Pool, type SharedListener, startPool } from './workers/pool.ts'
import type { OutsideAddresses } from './zones/lookup.ts'
import { type Aliases, createAliases, edgeAddresses } from './zones/outside.ts'
import { createTallyBook } from './zones/traffic.ts'
import type { ZoneSource, ZoneTable } from './zones/zone-table.ts'

export type NameserverOptions = {
  config: Config
  db: Database
  notifications: Notifications
  log: Logger
  /** By default, its own registry. */
  registry?: Registry
  /** Called when the zones are loaded. */
  transfers?(
    snapshot: Snapshot,
    outside: OutsideAddresses,
    keys: ZoneKeys | null,
  ): Transfers & { close(): Promise<void> }
  /** Opens the keys of zones; without it, nobody can update a zone, and no customer can transfer one. */
  vault?: Vault
  /** Null for no rate limit. */
  rateLimit?: RateLimitOptions | null
  /** Number of threads that answer over UDP instead of this one, if the system supports them. */
  workers?: number
  /** The program of a thread, for tests. */
  workerProgram?: URL
  tcp?: Partial<TcpLimits>
  /** Where the zones are saved, for a start without the database. */
  snapshots?: Snapshots | undefined
}

export type Nameserver = {
  /** Loads the zones, then opens the ports. Returns the addresses in the order of the configuration. */
  listen(): Promise<ListenAddress[]>
  /** Null until `listen`. */
  readonly snapshot: Snapshot | null
  metrics: NameserverMetrics
  /** Whether every listener and every thread answers; sends queries to itself until they do. */
  answers(): Promise<boolean>
  /** Writes the counts so far, instead of at the end of the minute. */
  flushTraffic(): Promise<void>
  close(): Promise<void>
}

type Opening = {
  aliases: Aliases
  table: ZoneTable
  transfers: Transfers | null
  updates: Updates | null
  notices: Transfers
  packets: PacketSockets | null
}

export function createNameserver(options: NameserverOptions): Nameserver {
  const { config, db, notifications, log, rateLimit } = options
  let snapshot: Snapshot | null = null
  const metrics = createNameserverMetrics(
    options.registry,
    () => snapshot?.table.size ?? 0,
    () => snapshot?.ageSeconds() ?? 0,
  )
  const { workers = 0 } = options
  const cache = createAnswerCache<ZoneSource>()
  const cookieSecret = randomBytes(32)
  const cookies = createCookies(cookieSecret)
  const limits = rateLimit === null ? null : { memory: rateLimitMemory(), ...rateLimit }
  const limit = limits && createRateLimit(limits)
  const outside: OutsideAddresses = { edge: edgeAddresses(config) }
  const closers: (() => Promise<void>)[] = []
  let rollups: Rollups | null = null
  let answers = async () => false

  async function open(
    address: ListenAddress,
    index: number,
    context: Opening,
  ): Promise<ListenAddress & SharedListener> {
    const { aliases, table, transfers, updates, notices, packets } = context
    const nsid = config.nameservers[index] ?? config.nameservers[0]!
    const handlers = { transfers, updates, notices }
    const shared = { table, aliases, outside, cookies, rateLimit: limit, metrics, ...handlers, nsid, log }
    const responderFor = (cache: AnswerCache<ZoneSource>) => createResponder({ ...shared, cache })
    const sockets: number[] = []
    const closeSockets = async () => {
      for (const socket of sockets.splice(0)) packets!.close(socket)
    }
    const openUdp = async (address: ListenAddress) => {
      try {
        for (let worker = 0; worker < workers; worker++) sockets.push(packets!.open(address))
      } catch (error) {
        await closeSockets()
        throw error
      }
      return { close: closeSockets }
    }
    const listening = { metrics, log, ...(options.tcp && { limits: options.tcp }), ...(packets && { openUdp }) }
    const { host, port, close } = await listenOn(address, responderFor(cache), listening)
    closers.push(close)
    return { host, port, sockets, nsid, responderFor }
  }

  /** This thread handles zones, TCP and transfers; the others answer from their own caches. */
  function openWorkers(listeners: readonly SharedListener[], packets: PacketSockets, loaded: Snapshot): Pool {
    const memory = generationMemory()
    const generations = createGenerations(memory)
    loaded.onChange((names) => {
      for (const name of names) generations.end(wireName(name))
    })
    loaded.onMoved(generations.endAll)
    const pool = startPool({
      workers,
      packets,
      listeners,
      cache,
      cookieSecret,
      rateLimit: limits && { perSecond: limits.perSecond, slip: limits.slip, memory: limits.memory },
      generations,
      generationMemory: memory,
      nameMemory: loaded.table.filter.memory,
      metrics,
      questions: createTallyBook(loaded.table.tallies),
      program: options.workerProgram,
      log,
    })
    closers.push(pool.close)
    return pool
  }

  function takeQuestions({ tallies }: ZoneTable): Counted[] {
    cache.count()
    return tallies.take()
  }

  async function openKeys(): Promise<ZoneKeys | null> {
    const { vault, snapshots } = options
    if (!vault) return null
    const keys = await openZoneKeys({ db, notifications, vault, log, snapshots })
    closers.push(keys.close)
    return keys
  }

  function openUpdates({ table }: Snapshot, keys: ZoneKeys): Updates {
    const { registry } = options
    const perMinute = { key: config.rateLimitPerMinute, account: config.rateLimitPerAccountPerMinute }
    return createUpdates({ keys, table, db, perMinute, log, ...(registry && { registry }) })
  }

  async function loadPackets(): Promise<PacketSockets | null> {
    const packets = workers > 0 ? await loadPacketSockets() : null
    if (workers > 0 && !packets) log.warn('without koffi, or not on Linux, one thread of the nameserver answers alone')
    return packets
  }

  async function close(): Promise<void> {
    for (const closer of closers.splice(0).reverse()) await closer()
    await rollups?.close()
    rollups = null
  }

  return {
    metrics,
    answers: () => answers(),
    get snapshot() {
      return snapshot
    },
    async listen() {
      const constants = {
        nameservers: config.nameservers.slice(0, 2),
        soa: (zone: string) => soaOf(config, zone),
        generated: (records: readonly { name: string; type: string }[]) => generatedRecords(config, records),
      }
      const platform = platformZones(config)
      const { vault, snapshots } = options
      const following = { db, notifications, platform, constants, outside, log, vault, snapshots }
      const loaded = await createSnapshot(following)
      snapshot = loaded
      closers.push(loaded.close)
      rollups = startDnsRollups({ db, tallies: { take: () => takeQuestions(loaded.table) }, log })
      loaded.onMoved(cache.clear)
      try {
        const keys = await openKeys()
        const transfers = options.transfers?.(loaded, outside, keys) ?? null
        if (transfers) closers.push(() => transfers.close())
        const updates = keys && openUpdates(loaded, keys)
        const packets = await loadPackets()
        const { table } = loaded
        const notices = createNotices({ table, db, transfers, log })
        const context = { aliases: createAliases(loaded.onChange), table, transfers, updates, notices, packets }
        const listeners: (ListenAddress & SharedListener)[] = []
        for (const [index, text] of config.nameserverListen.entries()) {
          listeners.push(await open(listenAddress(text), index, context))
        }
        const pool = packets && openWorkers(listeners, packets, loaded)
        answers = createSelfQueries(listeners, (listener) => pool?.silent(listener) ?? 0)
        return listeners.map(({ host, port }) => ({ host, port }))
      } catch (error) {
        await close()
        throw error
      }
    },
    async flushTraffic() {
      await rollups?.flush()
    },
    close,
  }
}
