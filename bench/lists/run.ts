// `npm run bench -- lists`: every list with every filter on an almost empty and a large database, in turns, as the ratio of
// the two. `--only` takes a part of a path.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { freePort, startPlatform, withoutLimits } from '../children.ts'
import { quantile, table, verdict } from '../figures.ts'
import type { Bench } from '../group.ts'
import { type ListDocument, listsOf, queriesOf, searches } from './requests.ts'
import { type Seeded, type Sizes, seed } from './seed.ts'

/** The first is almost empty: little more than a page of everything, with every filtered value. */
const sizes: Record<'empty' | 'full', Sizes> = {
  empty: {
    accounts: 25,
    projects: 25,
    deployments: 80,
    domains: 25,
    records: 80,
    tickets: 80,
    tokens: 80,
    deliveries: 80,
    takedowns: 80,
    events: 80,
  },
  full: {
    accounts: 2_000,
    projects: 100,
    deployments: 200_000,
    domains: 100,
    records: 10_000,
    tickets: 100_000,
    tokens: 10_000,
    deliveries: 100_000,
    takedowns: 10_000,
    events: 1_000_000,
  },
}
const maxRatio = 2

type Server = Seeded & { url: string }

export const group = {
  about: 'Every list and filter, almost empty against 1,000,000 events and 200,000 deployments',
  figures: { worst: { what: 'The slowest list with the large database, time', against: 'an almost empty one' } },
  run,
}

async function run(bench: Bench<'worst'>): Promise<void> {
  const { directory, atEnd } = bench
  const requests = bench.size(30, 1)
  const warmUps = bench.size(3, 0)
  const postgres = await bench.startPostgres()
  const admin = new pg.Client({ connectionString: postgres.url() })
  await admin.connect()
  atEnd(() => admin.end())

  async function start(side: 'empty' | 'full'): Promise<Server> {
    console.error(`filling the ${side} database …`)
    await admin.query(`CREATE DATABASE lists_${side}`)
    const database = postgres.url(`lists_${side}`)
    const port = await freePort()
    const environment = {
      ...withoutLimits,
      DATABASE_URL: database,
      DATA_DIR: directory,
      PORT: String(port),
      METRICS_PORT: '0',
      SECRETS_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'warn',
    }
    const child = await startPlatform(['api'], environment)
    atEnd(() => child.stop())
    // Only now: at its first start the server creates the database and records the key that seals secrets.
    const client = new pg.Client({ connectionString: database })
    await client.connect()
    const seeded = await seed(client, sizes[bench.smoke ? 'empty' : side])
    await client.end()
    return { ...seeded, url: `http://127.0.0.1:${port}` }
  }
  const empty = await start('empty')
  const full = await start('full')

  const document = (await (await fetch(`${empty.url}/openapi.json`)).json()) as ListDocument
  const lists = listsOf(document, full.paths).flatMap((list) =>
    queriesOf(list).map((query) => `${list.path}${query && `?${query}`}`),
  )
  const targets = ['/account', ...searches, ...lists].flatMap((path) => [
    { name: path, path, of: (server: Server) => server.token },
    ...(path === '/account' ? [{ name: `${path} (narrowed)`, path, of: (server: Server) => server.narrowed }] : []),
  ])
  const rows: { name: string; emptyMs: number; fullMs: number; ratio: number }[] = []
  for (const { name, path, of } of targets.filter((one) => one.name.includes(bench.only))) {
    const times = { empty: [] as number[], full: [] as number[] }
    for (let turn = -warmUps; turn < requests; turn++) {
      // In turns, so that a machine that gets slower or faster favours no side.
      for (const [side, server] of Object.entries({ empty, full }) as ['empty' | 'full', Server][]) {
        const ms = await ask(`${server.url}/api${path}`, of(server))
        if (turn >= 0) times[side].push(ms)
      }
    }
    // Not the median: on a busy machine, the fastest requests show what a list costs.
    const [emptyMs, fullMs] = [quantile(times.empty, 0.2), quantile(times.full, 0.2)]
    rows.push({ name, emptyMs, fullMs, ratio: fullMs / emptyMs })
  }
  rows.sort((one, other) => other.ratio - one.ratio)
  const shown = rows.map(({ name, emptyMs, fullMs, ratio }) => [
    name,
    emptyMs.toFixed(1),
    fullMs.toFixed(1),
    ratio.toFixed(2),
  ])
  console.log(table([['list', 'empty ms', 'full ms', 'ratio'], ...shown]))
  const [worst] = rows
  const bound = `no list takes more than ${maxRatio} times as long`
  if (worst) bench.record('worst', `${worst.ratio.toFixed(2)} (\`${worst.name}\`)`)
  if (worst) console.log(verdict(worst.ratio <= maxRatio, bound, `${worst.ratio.toFixed(2)} by ${worst.name}`))
}

async function ask(url: string, token: string): Promise<number> {
  const start = performance.now()
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url} was answered ${response.status}: ${text}`)
  return performance.now() - start
}
