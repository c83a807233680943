// `npm run bench -- api`: our API and the floor on one PostgreSQL, in turns, with a small and a large database.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { type Child, freePort, startChild, startPlatform, type Usage, withoutLimits } from '../children.ts'
import type { Bench, Figure } from '../group.ts'
import type { Measured, Slice } from './drive.ts'
import { endpoints } from './endpoints.ts'
import { expectSame } from './parity.ts'
import { type Measurements, type Round, ratio, report, type Side } from './report.ts'
import { makeRepository, seed, sweep } from './seed.ts'
import { measureWorkers, workerFigures } from './workers.ts'

const connections = 32
const poolSize = 10
const file = (name: string) => join(import.meta.dirname, name)

type Server = {
  side: Side
  size: number
  url: string
  token: string
  child: Child
  client: pg.Client
  peakBytes: number
}

const endpointFigures: Record<string, Figure> = Object.fromEntries(
  endpoints.map(({ name }) => {
    return [name, { what: `\`${name}\`, requests per second with 100,000 rows`, against: 'bare Fastify and pg' }]
  }),
)

export const group = {
  about: 'The API against a bare server that does the same work, and two worker processes against one',
  figures: { ...endpointFigures, ...workerFigures },
  async run(bench: Bench): Promise<void> {
    const postgres = await bench.startPostgres()
    await makeRepository(join(bench.directory, 'repos'))
    if (bench.only !== 'workers') await measureEndpoints(bench, postgres)
    if (bench.only === '' || bench.only === 'workers') await measureWorkers(bench, postgres)
  },
}

async function measureEndpoints(bench: Bench, postgres: EmbeddedPostgres): Promise<void> {
  const { directory, atEnd, only, smoke } = bench
  const sizes = smoke ? [100] : [1_000, 100_000]
  const sliceSeconds = smoke ? 0.25 : bench.seconds(1)
  const warmUpSeconds = bench.size(0.8, 0.1)
  const rounds = bench.rounds(5)
  const servers: Server[] = []
  for (const size of sizes) {
    // Separate databases, because notifications are per database and must not wake the other side.
    const token = await seed(postgres, size, [`floor_${size}`, `ours_${size}`])
    for (const side of ['floor', 'ours'] as const) {
      const database = postgres.url(`${side}_${size}`)
      const port = await freePort()
      const child = await startServer(side, directory, database, port)
      atEnd(() => child.stop())
      const client = new pg.Client({ connectionString: database })
      await client.connect()
      atEnd(() => client.end())
      servers.push({ side, size, url: `http://127.0.0.1:${port}`, token, child, client, peakBytes: 0 })
    }
  }
  const driver = await startChild(file('drive.ts'), {})
  atEnd(() => driver.stop())

  const all: Measurements[] = []
  for (const endpoint of endpoints.filter(({ name }) => name.includes(only))) {
    console.error(`${endpoint.name} …`)
    for (const size of sizes) {
      const [floor, ours] = servers.filter((server) => server.size === size)
      await expectSame(ours!.url, floor!.url, ours!.token, endpoint.request(size, 0))
    }
    const slice = async (server: Server, seconds: number): Promise<Round> => {
      const { url, token, size } = server
      const question: Slice = { endpoint: endpoint.name, url, token, size, connections, seconds }
      const before = await server.child.ask<Usage>('usage')
      const driven = await driver.ask<Measured>(question)
      const after = await server.child.ask<Usage>('usage')
      server.peakBytes = Math.max(server.peakBytes, after.residentBytes)
      await sweep(server.client, endpoint)
      return { ...driven, cpuUs: ((after.cpuMs - before.cpuMs) * 1000) / driven.all }
    }
    const measured = Object.fromEntries(sizes.map((size) => [size, { ours: [], floor: [] }])) as Measurements['rounds']
    // The first endpoint also warms up shared code.
    for (const server of servers) await slice(server, all.length === 0 ? 3 * warmUpSeconds : warmUpSeconds)
    for (let round = 0; round < rounds; round++) {
      // Alternates the order, so that a machine that gets slower or faster favours no side.
      for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
        measured[server.size]![server.side].push(await slice(server, sliceSeconds))
      }
    }
    all.push({ endpoint: endpoint.name, rounds: measured })
    const { ours, floor } = measured[Math.max(...sizes)]!
    bench.record(endpoint.name, ratio(ours, floor, 'perSecond'))
  }
  const peakMb = (side: Side) => Math.max(...servers.map((one) => (one.side === side ? one.peakBytes : 0))) / 2 ** 20
  console.log(report(all, sizes, peakMb('ours'), peakMb('floor')))
  console.log(`${connections} connections, ${poolSize} to the database`)
  // They would take memory and CPU time from the workers.
  for (const { child } of servers) await child.stop()
}

function startServer(side: Side, directory: string, database: string, port: number): Promise<Child> {
  const shared = { DATABASE_URL: database, DATABASE_POOL: String(poolSize), PORT: String(port) }
  if (side === 'floor') {
    return startChild(file('floor.ts'), { ...shared, REPOSITORIES: join(directory, 'repos') })
  }
  const environment = {
    ...shared,
    DATA_DIR: directory,
    METRICS_PORT: '0',
    ...withoutLimits,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    LOG_LEVEL: 'info',
  }
  return startPlatform(['api'], environment, join(directory, 'ours.log'))
}
