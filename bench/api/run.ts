// `npm run bench -- api`: ours and the floor on one PostgreSQL, driven in turns, small and large database alike.
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { type Child, freePort, startChild, startPlatform, type Usage, withoutLimits } from '../children.ts'
import type { Measured, Slice } from './drive.ts'
import { endpoints } from './endpoints.ts'
import { type Measurements, type Round, report, type Side } from './report.ts'
import { expectSame } from './sameness.ts'
import { makeRepository, seed, sweep } from './seed.ts'
import { measureWorkers } from './workers.ts'

const sizes = [1_000, 100_000]
const connections = 32
const poolSize = 10
const sliceSeconds = 1
const warmUpSeconds = 0.8
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

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { only: { type: 'string', default: '' }, rounds: { type: 'string', default: '5' } },
  })
  if (values.only === 'workers') return measureWorkers(Number(values.rounds))
  const [loadBefore] = loadavg()
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  // PostgreSQL runs as another user under root and must get through.
  await chmod(directory, 0o711)
  const closers: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
  try {
    const postgres = await startEmbeddedPostgres({ directory: join(directory, 'postgres') })
    closers.push(() => postgres.stop())
    await makeRepository(join(directory, 'repos'))
    const servers: Server[] = []
    for (const size of sizes) {
      // A database each: notifications are heard per database, and ours must not wake up to the floor's.
      const token = await seed(postgres, size, [`floor_${size}`, `ours_${size}`])
      for (const side of ['floor', 'ours'] as const) {
        const database = postgres.url(`${side}_${size}`)
        const port = await freePort()
        const child = await startServer(side, directory, database, port)
        closers.push(() => child.stop())
        const client = new pg.Client({ connectionString: database })
        await client.connect()
        closers.push(() => client.end())
        servers.push({ side, size, url: `http://127.0.0.1:${port}`, token, child, client, peakBytes: 0 })
      }
    }
    await servers[0]!.client.query('CHECKPOINT')
    const driver = await startChild(file('drive.ts'), {})
    closers.push(() => driver.stop())

    const all: Measurements[] = []
    for (const endpoint of endpoints.filter(({ name }) => name.includes(values.only))) {
      console.error(`${endpoint.name} …`)
      for (const size of sizes) {
        const [floor, ours] = servers.filter((server) => server.size === size)
        await expectSame(ours!.url, floor!.url, ours!.token, endpoint.request(size, 0))
      }
      const slice = async (server: Server, seconds: number): Promise<Round> => {
        const { url, token, size } = server
        const question: Slice = { endpoint: endpoint.name, url, token, size, connections, seconds }
        const before = await server.child.ask<Usage>('usage')
        const measured = await driver.ask<Measured>(question)
        const after = await server.child.ask<Usage>('usage')
        server.peakBytes = Math.max(server.peakBytes, after.residentBytes)
        await sweep(server.client, endpoint)
        return { ...measured, cpuUs: ((after.cpuMs - before.cpuMs) * 1000) / measured.all }
      }
      const rounds = Object.fromEntries(sizes.map((size) => [size, { ours: [], floor: [] }])) as Measurements['rounds']
      // The first endpoint also warms up what all of them share.
      for (const server of servers) await slice(server, all.length === 0 ? 3 * warmUpSeconds : warmUpSeconds)
      for (let round = 0; round < Number(values.rounds); round++) {
        // There and back again, so that a machine that gets slower or faster favours nobody.
        for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
          rounds[server.size]![server.side].push(await slice(server, sliceSeconds))
        }
      }
      all.push({ endpoint: endpoint.name, rounds })
    }
    const peakMb = (side: Side) => Math.max(...servers.map((one) => (one.side === side ? one.peakBytes : 0))) / 2 ** 20
    console.log(report(all, sizes, peakMb('ours'), peakMb('floor')))
    const load = `${loadBefore!.toFixed(1)} on ${availableParallelism()} processors`
    console.log(`${connections} connections, ${poolSize} to the database; load average before the start ${load}`)
  } finally {
    for (const close of closers.reverse()) await close()
  }
  if (values.only === '') await measureWorkers(Number(values.rounds))
}

function startServer(side: Side, directory: string, database: string, port: number): Promise<Child> {
  const shared = { DATABASE_URL: database, DATABASE_POOL: String(poolSize), PORT: String(port) }
  // For a profile of ours: BENCH_NODE_ARGS='--cpu-prof --cpu-prof-dir=profiles'.
  const nodeArgs = { NODE_ARGS: process.env.BENCH_NODE_ARGS ?? '' }
  if (side === 'floor') {
    return startChild(file('floor.ts'), { ...shared, REPOSITORIES: join(directory, 'repos') })
  }
  const environment = {
    ...shared,
    ...nodeArgs,
    DATA_DIR: directory,
    METRICS_PORT: '0',
    ...withoutLimits,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    LOG_LEVEL: 'info',
  }
  return startPlatform(file('server.ts'), environment, join(directory, 'ours.log'))
}
