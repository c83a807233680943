// The platform's own zones, made from the configuration: the domain of the deployments, and what is needed to reach it.
import { isIPv6 } from 'node:net'
import type { Config } from '../config.ts'
import { type Db, rows, sql } from '../db.ts'
import { listenAddress } from '../dns/listen-address.ts'
import { generatedTtl } from './zones.ts'

/** By name. A zone that is not verified does not stand above what customers attach below it. */
export type PlatformZones = ReadonlyMap<string, { verified: boolean; records: readonly string[] }>

const everyAddress = new Set(['0.0.0.0', '::'])
const isLoopback = (address: string) => address === '::1' || address.startsWith('127.')

const addressLine = (name: string, address: string) =>
  `${isIPv6(address) ? 'AAAA' : 'A'} ${generatedTtl} ${name} ${address}`

/** Where a nameserver is asked: where it listens, or if that says nothing to others, at the edge of the same number. */
function addressesOf(config: Config, index: number): string[] {
  const { host } = listenAddress(config.nameserverListen[index] ?? config.nameserverListen[0] ?? '')
  if (!everyAddress.has(host) && !(config.production && isLoopback(host))) return [host]
  const families = Object.values(Object.groupBy(config.edge.addresses, (address) => String(isIPv6(address))))
  return families.map((addresses) => addresses![index] ?? addresses![0]!)
}

/** Null where the zone of a nameserver's name is not ours to serve. */
function zoneOfHost(config: Config, host: string): string | null {
  const domain = config.edge.domain.toLowerCase()
  if (host.endsWith(`.${domain}`)) return domain
  // Elsewhere it is somebody's, whose secondaries must not get another one in its place by our catalog. On one's own
  // machine there is nobody else who could tell where the nameservers are.
  const parent = host.slice(host.indexOf('.') + 1)
  return config.production || !parent.includes('.') ? null : parent
}

export function platformZones(config: Config): PlatformZones {
  const zones = new Map<string, { verified: boolean; records: string[] }>()
  // The apex and www have the edge's addresses like those of every zone that says nothing else.
  const records = config.edge.addresses.map((address) => addressLine('*', address))
  zones.set(config.edge.domain.toLowerCase(), { verified: true, records })
  for (const [index, name] of config.nameservers.entries()) {
    const host = name.toLowerCase()
    const zone = zoneOfHost(config, host)
    if (zone === null) continue
    if (!zones.has(zone)) zones.set(zone, { verified: false, records: [] })
    const relative = host.slice(0, -zone.length - 1)
    for (const address of addressesOf(config, index)) zones.get(zone)!.records.push(addressLine(relative, address))
  }
  return zones
}

/**
 * Gives each zone a row, whose serial whoever writes a challenge moves. It moves here as well, at every start, because
 * the configuration may be another one than before and secondaries would not ask again otherwise.
 */
export async function announcePlatformZones(db: Db, zones: PlatformZones): Promise<void> {
  await rows(
    db,
    sql`INSERT INTO platform_zone (name) SELECT unnest(${[...zones.keys()]}::text[])
        ON CONFLICT (name) DO UPDATE SET serial = platform_zone.serial + 1 RETURNING name`,
  )
}
