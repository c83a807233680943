// `npm run bench -- lists`: every list with every filter on an almost empty database and on a large one, in turns, as the
// ratio of the two. `--only` takes a part of a path; `--requests` is how often each is asked on each side.
import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { freePort, startPlatform, withoutLimits } from '../children.ts'
import { quantile, table, verdict } from '../figures.ts'
import { type ListDocument, listsOf, queriesOf, searches } from './requests.ts'
import { type Seeded, type Sizes, seed } from './seed.ts'

/** The first is almost empty: a page and little more of everything, with every value that is filtered for. */
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
const highestRatio = 2
const warmUps = 3

type Server = Seeded & { url: string }

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { only: { type: 'string', default: '' }, requests: { type: 'string', default: '30' } },
  })
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  // PostgreSQL runs as another user under root and must get through.
  await chmod(directory, 0o711)
  const closers: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
  try {
    const postgres = await startEmbeddedPostgres({ directory: join(directory, 'postgres') })
    closers.push(() => postgres.stop())
    const admin = new pg.Client({ connectionString: postgres.url() })
    await admin.connect()
    closers.push(() => admin.end())

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
      const child = await startPlatform(join(import.meta.dirname, 'server.ts'), environment)
      closers.push(() => child.stop())
      // Only now: at its first start the server makes the database, and notes which key secrets are sealed with.
      const client = new pg.Client({ connectionString: database })
      await client.connect()
      const seeded = await seed(client, sizes[side])
      await client.end()
      return { ...seeded, url: `http://127.0.0.1:${port}` }
    }
    const empty = await start('empty')
    const full = await start('full')

    const document = (await (await fetch(`${empty.url}/openapi.json`)).json()) as ListDocument
    const lists = listsOf(document, full.paths).flatMap((list) =>
      queriesOf(list).map((query) => `${list.path}${query && `?${query}`}`),
    )
    const asked = ['/account', ...searches, ...lists].flatMap((path) => [
      { name: path, path, of: (server: Server) => server.token },
      ...(path === '/account' ? [{ name: `${path} (narrowed)`, path, of: (server: Server) => server.narrowed }] : []),
    ])
    const rows: { name: string; emptyMs: number; fullMs: number; ratio: number }[] = []
    for (const { name, path, of } of asked.filter((one) => one.name.includes(values.only))) {
      const times = { empty: [] as number[], full: [] as number[] }
      for (let turn = -warmUps; turn < Number(values.requests); turn++) {
        // In turns, so that a machine that gets slower or faster favours nobody.
        for (const [side, server] of Object.entries({ empty, full }) as ['empty' | 'full', Server][]) {
          const ms = await ask(`${server.url}/api${path}`, of(server))
          if (turn >= 0) times[side].push(ms)
        }
      }
      // Not the median: on a machine that does other things too, the quick ones tell what a list costs.
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
    const bound = `no list takes more than ${highestRatio} times as long`
    if (worst) console.log(verdict(worst.ratio <= highestRatio, bound, `${worst.ratio.toFixed(2)} by ${worst.name}`))
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

async function ask(url: string, token: string): Promise<number> {
  const start = performance.now()
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url} was answered ${response.status}: ${text}`)
  return performance.now() - start
}
