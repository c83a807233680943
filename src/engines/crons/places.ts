// Where the worker reaches an edge: on its own machine first, then at the addresses that visitors use.
import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import type { Config } from '../../config.ts'
import { type ListenAddress, reachableAddress } from '../../dns/listen-address.ts'
import type { Database } from '../../platform/database/database.ts'
import { findRootCertificate } from '../../services/certificates/index.ts'

export type EdgePlaces = {
  addresses: ListenAddress[]
  /** Whom certificates must be of; null: plain HTTP, where visitors use it too. */
  ca: string[] | null
}

type PlaceConfig = Pick<Config, 'production' | 'host' | 'edge' | 'acme'>

/** In production HTTPS alone: the secret of a cron goes along. */
export function placesOf({ production, host, edge, acme }: PlaceConfig): (db: Database) => Promise<EdgePlaces> {
  const ports = production ? [edge.httpsPort, 443] : [edge.httpPort]
  const hosts = [...new Set([host, ...edge.addresses])]
  const all = ports
    .flatMap((port) => hosts.map((host) => reachableAddress({ host, port })))
    .filter((place) => place !== null)
  const addresses = [...new Map(all.map((place) => [`${place.host} ${place.port}`, place])).values()]
  if (!production) return async () => ({ addresses, ca: null })
  const known = [...rootCertificates, ...(acme?.caFile ? [readFileSync(acme.caFile, 'utf8')] : [])]
  return async (db) => {
    const own = acme ? null : await findRootCertificate(db)
    return { addresses, ca: own ? [...known, own] : known }
  }
}
