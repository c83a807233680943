// The platform's own zones, derived from the configuration: the deployments' domain, and the nameservers' names.
import { isIPv6 } from 'node:net'
import type { Config } from '../../../config.ts'
import { listenAddress } from '../../../dns/listen-address.ts'
import type { Db } from '../../../platform/database/database.ts'
import { generatedTtl } from './zones.ts'

/** The settings from which the platform's own zones are derived. */
export type PlatformZoneOptions = Pick<Config, 'nameservers' | 'nameserverListen' | 'production'> & {
  edge: Pick<Config['edge'], 'domain' | 'addresses'>
}

/** An unverified zone does not own the names below it, so customers can attach them. */
type PlatformZone = {
  verified: boolean
  records: string[]
  /** The whole pool. */
  nameservers: readonly string[]
}

/** By name. */
export type PlatformZones = ReadonlyMap<string, Readonly<PlatformZone>>

const everyAddress = new Set(['0.0.0.0', '::'])
const isLoopback = (address: string) => address === '::1' || address.startsWith('127.')

const addressLine = (name: string, address: string) =>
  `${isIPv6(address) ? 'AAAA' : 'A'} ${generatedTtl} ${name} ${address}`

/**
 * The addresses of a name in the pool: where its nameserver listens or, if that is not reachable from outside, the edge
 * address at its index. Names alternate, so two adjacent ones have both nameservers.
 */
function addressesOf(options: PlatformZoneOptions, place: number): string[] {
  const index = place % Math.max(2, options.nameserverListen.length)
  const { host } = listenAddress(options.nameserverListen[index] ?? options.nameserverListen[0] ?? '')
  if (!everyAddress.has(host) && !(options.production && isLoopback(host))) return [host]
  const families = Object.values(Object.groupBy(options.edge.addresses, (address) => String(isIPv6(address))))
  return families.map((addresses) => addresses![index] ?? addresses![0]!)
}

/** The zone of a nameserver's name; null if it is not served here. */
function zoneOfHost(options: PlatformZoneOptions, host: string): string | null {
  const domain = options.edge.domain.toLowerCase()
  if (host.endsWith(`.${domain}`)) return domain
  // In production, another server has that zone, and our catalog must not replace it on shared secondaries.
  const parent = host.slice(host.indexOf('.') + 1)
  return options.production || !parent.includes('.') ? null : parent
}

export function platformZones(options: PlatformZoneOptions): PlatformZones {
  const zones = new Map<string, PlatformZone>()
  const { nameservers } = options
  // The apex and www get the addresses of the edge as in every zone (generatedRecords).
  const records = options.edge.addresses.map((address) => addressLine('*', address))
  zones.set(options.edge.domain.toLowerCase(), { verified: true, records, nameservers })
  for (const [index, name] of nameservers.entries()) {
    const host = name.toLowerCase()
    const zone = zoneOfHost(options, host)
    if (zone === null) continue
    if (!zones.has(zone)) zones.set(zone, { verified: false, records: [], nameservers })
    const relative = host.slice(0, -zone.length - 1)
    for (const address of addressesOf(options, index)) zones.get(zone)!.records.push(addressLine(relative, address))
  }
  return zones
}

/**
 * Gives each zone a row for its serial, which increases with every challenge. It also increases here, at every start,
 * because the configuration may have changed and secondaries transfer a zone only if its serial increases.
 */
export async function announcePlatformZones(db: Db, zones: PlatformZones): Promise<void> {
  for (const name of zones.keys()) {
    await db.platformZone.upsert({ where: { name }, create: { name }, update: { serial: { increment: 1 } } })
  }
}
