// Where a worker can reach an edge: first on its own machine, then at the public addresses.
import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import type { Config } from '../../config.ts'
import { type ListenAddress, reachableAddress } from '../../dns/listen-address.ts'
import type { Database } from '../../platform/database/database.ts'
import { findRootCertificate } from '../../services/certificates/index.ts'

export type EdgeEndpoints = {
  addresses: ListenAddress[]
  /** Trusted root certificates; null for plain HTTP in development. */
  ca: string[] | null
}

type EndpointConfig = Pick<Config, 'production' | 'host' | 'edge' | 'acme'>

/** In production, only HTTPS, because requests contain the cron's secret. */
export function edgeEndpoints({
  production,
  host,
  edge,
  acme,
}: EndpointConfig): (db: Database) => Promise<EdgeEndpoints> {
  const ports = production ? [edge.httpsPort, 443] : [edge.httpPort]
  const hosts = [...new Set([host, ...edge.addresses])]
  const all = ports
    .flatMap((port) => hosts.map((host) => reachableAddress({ host, port })))
    .filter((endpoint) => endpoint !== null)
  const addresses = [...new Map(all.map((endpoint) => [`${endpoint.host} ${endpoint.port}`, endpoint])).values()]
  if (!production) return async () => ({ addresses, ca: null })
  const roots = [...rootCertificates, ...(acme?.caFile ? [readFileSync(acme.caFile, 'utf8')] : [])]
  return async (db) => {
    const own = acme ? null : await findRootCertificate(db)
    return { addresses, ca: own ? [...roots, own] : roots }
  }
}
