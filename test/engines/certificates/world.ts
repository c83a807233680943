// An API, both nameservers, an edge and an authority, and the certificates engine between them.
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import type { RetryTable } from '../../../src/engines/certificates/failures.ts'
import { createIssuer, type Issuer, type IssuerOptions } from '../../../src/engines/certificates/issuer.ts'
import { createEdge } from '../../../src/engines/edge/serve/server.ts'
import { createArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { type World as Nameservers, startWorld as startNameservers } from '../nameserver/world.ts'
import { freePorts, type Pebble, type PebbleOptions, startPebble } from './pebble.ts'

// Attempts follow each other as fast as a test can look.
export const quick: RetryTable = { delaysMs: [50, 100, 200], refusedMs: 3_600_000 }

export type World = Nameservers & {
  pebble: Pebble
  /** Where the edge serves HTTPS. */
  httpsPort: number
  engine(options?: Partial<IssuerOptions>): Promise<Issuer>
  /** A domain of the first account whose ownership is proved. */
  verified(name: string, method?: 'nameservers' | 'txt', token?: string): Promise<string>
  run(domainId: string, engine?: Issuer, signal?: AbortSignal): Promise<void>
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came.
  domain(name: string): Promise<any>
  stop(): Promise<void>
}

export async function startWorld(
  options: Partial<PebbleOptions> = {},
  environment: Record<string, string> = {},
): Promise<World> {
  const [httpPort, ...dnsPorts] = (await freePorts(3)) as [number, number, number]
  const [dnsServer, second] = dnsPorts.map((port) => `127.0.0.1:${port}`) as [string, string]
  const pebble = await startPebble({ dnsServer, httpPort, ...options })
  const names = await startNameservers(
    {},
    {
      NAMESERVER_LISTEN: `${dnsServer},${second}`,
      EDGE_ADDRESSES: '127.0.0.1',
      EDGE_HTTP_PORT: String(httpPort),
      EDGE_HTTPS_PORT: '0',
      ACME_DIRECTORY_URL: pebble.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
      ...environment,
    },
  )
  const { db, config, deps } = names
  const edge = createEdge({ ...deps, artifacts: createArtifacts(join(config.dataDir, 'artifacts')) })
  const { httpsPort } = await edge.listen()
  const engines: Issuer[] = []

  async function engine(more: Partial<IssuerOptions> = {}): Promise<Issuer> {
    const made = await createIssuer({ ...deps, retry: quick, ...more })
    engines.push(made)
    return made
  }

  const world: World = {
    ...names,
    pebble,
    httpsPort: httpsPort!,
    engine,
    async verified(name, method = 'txt', token = names.token) {
      await names.newDomain(name, token)
      const { id } = await db.domain.findFirstOrThrow({ where: { name } })
      await markVerified(db, config, id, { method, observed: { nameservers: [], txt: [] } })
      return id
    },
    async run(domainId, chosen, signal = new AbortController().signal) {
      const { issue } = chosen ?? engines[0] ?? (await engine())
      await issue.run({ domainId }, { attempt: 1, signal, async requireHeld() {} })
    },
    domain: async (name) => (await names.call('GET', `/domains/${name}`)).body,
    async stop() {
      for (const made of engines) await made.close()
      await edge.close()
      await names.stop()
      await pebble.stop()
    },
  }
  return world
}

/** What stands on the certificate that a domain is served with. */
export async function served(world: Pick<World, 'db'>, domainId: string) {
  const { inService } = await world.db.domain.findUniqueOrThrow({
    where: { id: domainId },
    include: { inService: true },
  })
  return inService && { row: inService, leaf: new X509Certificate(inService.chain) }
}
