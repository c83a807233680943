// Whoever follows `nextCursor` until it is null reads each list of the document whole, once, and finishes.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type List, type ListDocument, listsOf } from '../../bench/lists/requests.ts'
import { type Seeded, seed, zone } from '../../bench/lists/seed.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'

const sizes = {
  ...{ accounts: 6, projects: 4, deployments: 80, domains: 5, records: 30, tickets: 20, tokens: 20 },
  ...{ deliveries: 20, takedowns: 20, events: 80 },
}
const big = `acc_${'0'.repeat(24)}`
const rows = 'generate_series(1, 7) i'
const id = (prefix: string) => `'${prefix}_' || lpad(i::text, 24, '0')`
// What the seeded database has none of.
const more = [
  `INSERT INTO log_line (deployment_id, seq, at, stream, step, text, instance)
   SELECT 'dpl_${'62'.padStart(24, '0')}', 1000 + i, now(), 'stdout', 'run', 'x', '0' FROM ${rows}`,
  `INSERT INTO dns_key (id, account_id, domain_id, name, purpose, names, types, secret, created_at)
   SELECT ${id('key')}, '${big}', domain.id, 'key-' || i, 'update', '{*}', '{A}', '', now()
   FROM domain, ${rows} WHERE domain.name = '${zone}'`,
  `INSERT INTO node (id, name, roles, version, load)
   SELECT ${id('nod')}, 'node-' || i, '{worker}', '1', '{"cpu":0,"memoryBytes":1,"work":{}}' FROM ${rows}`,
  `INSERT INTO job (kind, payload, failed_at) SELECT 'build', '{}', now() - i / 2 * interval '1 s' FROM ${rows}`,
  `INSERT INTO users (id, email, name, created_at) SELECT ${id('usr')}, i || '@example.com', 'x', now() FROM ${rows}`,
  `INSERT INTO membership (id, account_id, user_id, role, project_ids, token_id, created_at)
   SELECT ${id('mem')}, '${big}', ${id('usr')}, 'owner', '{}', 'tok_' || lpad(i::text, 24, '0'), now() FROM ${rows}`,
  `INSERT INTO invitation (id, account_id, email, role, project_ids, hash, invited_by, expires_at, created_at)
   SELECT ${id('inv')}, '${big}', i || '@example.com', 'developer', '{}', int4send(i), 'x', now() + interval '1 day', now()
   FROM ${rows}`,
]
// First those below something else, then what they are below.
const emptied = [
  ...[
    'log_line',
    'dns_record',
    'dns_key',
    'cron_run',
    'deploy_hook',
    'pull_request',
    'production',
    'delivery',
    'ticket_message',
    'event',
    'takedown',
  ],
  ...['node', 'job', 'invitation', 'membership'],
]
const emptiedNext = ['ticket', 'deployment', 'domain', 'project', 'webhook']
// Who reads these is on them.
const neverEmpty = ['listTokens', 'listAccounts']

let api: TestApi
let client: pg.Client
let seeded: Seeded
let lists: List[]

const run = async (statements: string[]) => {
  await client.query('SET session_replication_role = replica')
  for (const statement of statements) await client.query(statement)
}

beforeAll(async () => {
  api = await sharedApi()
  client = new pg.Client({ connectionString: api.databaseUrl })
  await client.connect()
  seeded = await seed(client, sizes)
  await run(more)
  lists = listsOf((api.app as unknown as { swagger(): ListDocument }).swagger(), seeded.paths)
})
afterAll(async () => {
  await client?.end()
  await api?.stop()
})

type Page = { items: unknown[]; hasMore: boolean; nextCursor: string | null; latestCursor: string | null }

async function read(path: string): Promise<Page> {
  const { status, body, text, headers } = await api.call('GET', path, { token: seeded.token })
  if (status !== 200) throw new Error(`GET ${path}: ${text}`)
  const items = Object.values(body).find(Array.isArray) as unknown[]
  expect(Object.keys(body).slice(1), path).toEqual(['hasMore', 'nextCursor', 'latestCursor'])
  expect([body.nextCursor !== null, headers.link !== undefined], path).toEqual([body.hasMore, body.hasMore])
  return { items, ...body }
}

/** As a client does that knows nothing but the cursor. Ends with an error after twice the pages that it may take. */
async function walk(path: string, limit: number, total: number): Promise<Page[]> {
  const pages: Page[] = []
  for (let cursor = ''; ; ) {
    const page = await read(`${path}limit=${limit}${cursor && `&cursor=${cursor}`}`)
    pages.push(page)
    if (page.nextCursor === null) return pages
    if (pages.length > 2 * Math.ceil(total / limit)) throw new Error(`${path} does not end`)
    cursor = page.nextCursor
  }
}

const ordersOf = ({ id }: List) => (/Logs$/.test(id) ? [''] : ['', 'order=asc&', 'order=desc&'])

describe('a client that follows nextCursor until it is null', () => {
  test('finishes with every list, in one page and in several, and reads each item once', async () => {
    expect(lists.length).toBeGreaterThan(20)
    for (const list of lists) {
      for (const order of ordersOf(list)) {
        const path = `${list.path}?${order}`
        const [{ items, hasMore, nextCursor }] = (await walk(path, 100, 200)) as [Page]
        expect({ hasMore, nextCursor }, path).toEqual({ hasMore: false, nextCursor: null })
        const total = items.length
        expect(total, path).toBeGreaterThan(2)
        for (const [limit, count] of [
          [total + 1, 1],
          [total, 1],
          [total - 1, 2],
          [Math.ceil(total / 3), Math.ceil(total / Math.ceil(total / 3))],
        ] as const) {
          const pages = await walk(path, Math.min(limit, 100), total)
          expect([path, limit, pages.length]).toEqual([path, limit, count])
          expect(
            pages.flatMap((page) => page.items),
            `${path}limit=${limit}`,
          ).toEqual(items)
        }
      }
    }
  })

  test('keeps latestCursor for later, which finds nothing now, and takes nothing twice', async () => {
    for (const list of lists) {
      for (const order of ordersOf(list)) {
        const path = `${list.path}?${order}`
        const [first] = (await walk(path, 100, 200)) as [Page]
        const isOldestFirst = order === 'order=asc&' || (order === '' && first.latestCursor !== null)
        if (!isOldestFirst) {
          expect(first.latestCursor, path).toBeNull()
          continue
        }
        const later = await read(`${path}limit=100&cursor=${first.latestCursor}`)
        expect(later, path).toMatchObject({
          items: [],
          hasMore: false,
          nextCursor: null,
          latestCursor: expect.any(String),
        })
      }
    }
  })

  test('finishes at once with a list that has nothing', async () => {
    const empty = new Set<string>()
    for (const tables of [emptied, emptiedNext]) {
      await run(tables.map((table) => `DELETE FROM ${table}`))
      for (const list of lists) {
        for (const order of ordersOf(list)) {
          const path = `${list.path}?${order}limit=100`
          const { status, body } = await api.call('GET', path, { token: seeded.token })
          if (status === 404) continue
          const page = await read(path)
          expect(page.nextCursor, path).toBeNull()
          if (body && page.items.length === 0) empty.add(list.id)
        }
      }
    }
    expect(lists.map((list) => list.id).filter((name) => !empty.has(name))).toEqual(neverEmpty)
  })
})
