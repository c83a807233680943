// The alias job: looks up the addresses of ALIAS targets outside their zone, and stores them if they changed. Jobs of
// different accounts take turns, so names that lead to unresponsive servers don't delay other accounts.
import { Resolver } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import type { Config } from '../../../config.ts'
import { ipv4Octets, ipv4Text, ipv6Octets, ipv6Text } from '../../../dns/addresses.ts'
import { absoluteName, nameWithinZone } from '../../../dns/names.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { textName, wireName } from '../../../dns/packet/wire-names.ts'
import type { Handler } from '../../../jobs/worker.ts'
import type { Database } from '../../../platform/database/database.ts'
import { isPublicAddress } from '../../../platform/http/public-address.ts'
import {
  type AliasChanges,
  type AliasRow,
  type AliasZone,
  readAliasZone,
  storeAliases,
  zoneInPages,
} from '../../../services/dns/index.ts'
import { lookup, type OutsideAddresses } from '../zones/lookup.ts'
import { edgeAddresses } from '../zones/outside.ts'
import { openZone } from '../zones/zone.ts'
import { emptyRecords, type ZoneRecord } from '../zones/zone-records.ts'

export type AddressType = 'A' | 'AAAA'

/** An empty list means that the name has no such address. Rejects if the lookup fails. */
export type ResolveAlias = (name: string, type: AddressType) => Promise<{ address: string; ttl: number }[]>

export type AliasOptions = {
  config: Config
  db: Database
  log: Logger
  registry?: Registry
  /** By default the configured resolvers, or else the system's. */
  resolveAlias?: ResolveAlias
}

// Jobs spend most of their time waiting for resolvers.
const concurrency = 8
const lookupsAtOnce = 10
// Per run, so that a zone with thousands of targets lets others run in between.
const targetsInARun = 200
const minSeconds = 60
const maxSeconds = 3_600
const maxRetrySeconds = 600
// Targets that are due within this time are looked up together and change the zone once.
const togetherMs = 10_000
// The job only fails if the database is unavailable. Housekeeping queues jobs again that were given up.
const retryDelaysMs = [1_000, 5_000, 30_000, 120_000, 600_000] as const

export function createResolver(servers: readonly string[]): ResolveAlias {
  const resolver = new Resolver({ timeout: 1_500, tries: 2 })
  if (servers.length > 0) resolver.setServers([...servers])
  return async (name, type) => {
    try {
      return await (type === 'A' ? resolver.resolve4(name, { ttl: true }) : resolver.resolve6(name, { ttl: true }))
    } catch (error) {
      const { code } = error as { code?: string }
      if (code === 'ENODATA' || code === 'ENOTFOUND') return []
      throw error
    }
  }
}

/** The outside target of each ALIAS name; those that end in the zone or at the edge are left out. */
async function targetsOf(db: Database, zone: AliasZone, outside: OutsideAddresses): Promise<Map<string, string>> {
  const inside = zone.aliases.some(({ value }) => nameWithinZone(value, zone.name) !== null)
  const records = emptyRecords(wireName(zone.name)).edit()
  const add = (page: readonly ZoneRecord[]) =>
    records.add(page.map(({ type, ttl, name, value }) => `${type} ${ttl} ${name} ${value}`).join('\n'))
  if (inside) for await (const page of zoneInPages(db, zone.id)) add(page)
  else add(zone.aliases)
  const soa = { mname: '.', rname: '.', refresh: 0, retry: 0, expire: 0, minimum: 0, ttl: 0 }
  const constants = { nameservers: [], soa: () => soa, generated: () => [] }
  const built = openZone(zone.name, 0, records.done(), constants)
  const targets = new Map<string, string>()
  for (const { name } of zone.aliases) {
    const { awaits } = lookup(built, wireName(absoluteName(name, zone.name)), typeNumbers.A, outside)
    if (awaits) targets.set(name, textName(awaits.target))
    if (targets.size % targetsInARun === 0) await nextTurn()
  }
  return targets
}

/** Addresses by type, null if the lookup failed, and how long they are valid. */
type TargetAddresses = { A: string[] | null; AAAA: string[] | null; seconds: number }

const sameTexts = (one: readonly string[], other: readonly string[]) => one.join() === other.join()

export function createAliasHandler(options: AliasOptions): { alias: Handler<'alias'> } {
  const { config, db, log, registry } = options
  const resolve = options.resolveAlias ?? createResolver(config.dnsResolvers)
  const outside: OutsideAddresses = { edge: edgeAddresses(config) }
  // A private address would reveal the resolver's network, and lead visitors into their own.
  const mayAnswer = config.production ? isPublicAddress : () => true
  const lookups = new Counter({
    name: 'berth_alias_lookups_total',
    help: 'Lookups of addresses that ALIAS records lead to, by how they ended.',
    labelNames: ['outcome'],
    registers: registry ? [registry] : [],
  })

  async function addressesOf(target: string, type: AddressType): Promise<{ addresses: string[]; ttl: number } | null> {
    try {
      const found = (await resolve(target, type)).filter(({ address }) => mayAnswer(address))
      lookups.inc({ outcome: 'answered' })
      const octets = found.map(({ address }) => (type === 'A' ? ipv4Octets(address) : ipv6Octets(address)))
      const texts = octets.filter((one) => one !== null).map((one) => (type === 'A' ? ipv4Text(one) : ipv6Text(one)))
      return { addresses: [...new Set(texts)].sort(), ttl: Math.min(...found.map(({ ttl }) => ttl)) }
    } catch {
      lookups.inc({ outcome: 'failed' })
      return null
    }
  }

  async function find(target: string): Promise<TargetAddresses> {
    const [ipv4, ipv6] = await Promise.all([addressesOf(target, 'A'), addressesOf(target, 'AAAA')])
    const ttl = Math.min(ipv4?.ttl ?? Number.POSITIVE_INFINITY, ipv6?.ttl ?? Number.POSITIVE_INFINITY)
    const seconds = Number.isFinite(ttl) ? Math.min(maxSeconds, Math.max(minSeconds, ttl)) : minSeconds
    return { A: ipv4?.addresses ?? null, AAAA: ipv6?.addresses ?? null, seconds }
  }

  async function findAll(targets: readonly string[], signal: AbortSignal): Promise<Map<string, TargetAddresses>> {
    const found = new Map<string, TargetAddresses>()
    const remaining = targets.values()
    const work = async () => {
      for (const target of remaining) {
        signal.throwIfAborted()
        found.set(target, await find(target))
      }
    }
    await Promise.all(Array.from({ length: lookupsAtOnce }, work))
    return found
  }

  /** A failure keeps the previous addresses, unless they belong to another target. */
  function rowOf(name: string, target: string, before: AliasRow | undefined, found: TargetAddresses): AliasRow {
    const previous = before?.target === target ? before : undefined
    const failed = found.A === null || found.AAAA === null
    const known = (ipv6: boolean) => previous?.addresses.filter((address) => isIPv6(address) === ipv6) ?? []
    const failures = failed ? (previous?.failures ?? 0) + 1 : 0
    const seconds = failed ? Math.min(maxRetrySeconds, 30 * 2 ** Math.min(failures, 10)) : found.seconds
    return {
      name,
      target,
      addresses: [...(found.A ?? known(false)), ...(found.AAAA ?? known(true))],
      resolvedAt: found.A === null && found.AAAA === null ? (previous?.resolvedAt ?? null) : new Date(),
      dueAt: new Date(Date.now() + seconds * 1_000),
      failures,
    }
  }

  async function changesOf(zone: AliasZone, signal: AbortSignal): Promise<AliasChanges> {
    const targets = await targetsOf(db, zone, outside)
    const untilMs = Date.now() + togetherMs
    const due = [...targets].filter(([name, target]) => {
      const row = zone.known.get(name)
      return row?.target !== target || row.dueAt.getTime() <= untilMs
    })
    const dueTargets = [...new Set(due.map(([, target]) => target))]
    const found = await findAll(dueTargets.slice(0, targetsInARun), signal)
    const rows = due.flatMap(([name, target]) => {
      const one = found.get(target)
      return one ? [rowOf(name, target, zone.known.get(name), one)] : []
    })
    const gone = [...zone.known.keys()].filter((name) => !targets.has(name))
    const changed = rows.filter((row) => {
      const before = zone.known.get(row.name)
      if (row.resolvedAt === null || !before?.resolvedAt) return (before?.resolvedAt ?? null) !== row.resolvedAt
      return !sameTexts(before.addresses, row.addresses)
    })
    return {
      rows,
      gone,
      changed: changed.map(({ name }) => name),
      nextAt: nextOf(zone, targets, rows, dueTargets.length > targetsInARun),
    }
  }

  function nextOf(zone: AliasZone, targets: Map<string, string>, rows: AliasRow[], more: boolean): Date | null {
    if (more) return new Date()
    const times = new Map(Array.from(zone.known.values(), ({ name, dueAt }) => [name, dueAt.getTime()]))
    for (const { name, dueAt } of rows) times.set(name, dueAt.getTime())
    let next = Number.POSITIVE_INFINITY
    for (const [name, atMs] of times) if (targets.has(name)) next = Math.min(next, atMs)
    return Number.isFinite(next) ? new Date(next) : null
  }

  return {
    alias: {
      concurrency,
      retryDelaysMs,
      async run({ domainId }, { signal, requireHeld }) {
        const zone = await readAliasZone(db, domainId)
        if (!zone) return
        const changes = await changesOf(zone, signal)
        signal.throwIfAborted()
        await storeAliases(db, domainId, changes, requireHeld)
        const { rows, changed } = changes
        log.debug(
          { zone: zone.name, lookedUp: rows.length, changed: changed.length },
          'looked up the targets of ALIAS records',
        )
      },
      async giveUp() {
        // The rows keep the time of the next lookup, by which requeueOverdueAliases finds them.
      },
    },
  }
}
