// Every list with every filter and every pair of them reads a page from an index, however large its tables are.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type ListDocument, listsOf, queriesOf, searches } from '../../bench/lists/requests.ts'
import { type Seeded, seed } from '../../bench/lists/seed.ts'
import { startApi, type TestApi } from '../helpers/api.ts'

const sizes = {
  accounts: 1_000,
  projects: 60,
  deployments: 24_000,
  domains: 80,
  records: 8_000,
  tickets: 8_000,
  tokens: 4_000,
  deliveries: 4_000,
  takedowns: 4_000,
  events: 8_000,
}
// Tables of which a customer or the platform has more than a list may read through.
const large = new Set([
  ...['account', 'project', 'deployment', 'log_line', 'domain', 'dns_record', 'ticket', 'ticket_message', 'token'],
  ...['webhook', 'delivery', 'takedown', 'event'],
])
// Some pages of 20, as many as there are combinations of filters with few values. No account has more projects, domains
// or webhooks than its quota, so these may be read through.
const maxRead = 400
const maxBlocks = 80
const maxSearches = 30

let api: TestApi
let seeded: Seeded
let client: pg.Client
let sent: { text: string; values: unknown[] }[] = []
/** The driver's own, for what is not to be caught. */
const original = pg.Client.prototype.query as (this: pg.Client, ...args: unknown[]) => unknown

beforeAll(async () => {
  api = await startApi()
  client = new pg.Client({ connectionString: api.databaseUrl })
  await client.connect()
  seeded = await seed(client, sizes)
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [query, values] = args as [string | { text: string; values?: unknown[] }, unknown[]?]
    if (typeof query === 'object' && query?.text) sent.push({ text: query.text, values: query.values ?? values ?? [] })
    return original.apply(this, args)
  } as never)
})

afterAll(async () => {
  vi.restoreAllMocks()
  await client?.end()
  await api?.stop()
})

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  'Index Searches'?: number
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  Plans?: Plan[]
}

const literal = (value: unknown) => {
  if (value === null || value === undefined) return 'NULL'
  if (value instanceof Date) return pg.escapeLiteral(value.toISOString())
  const text = Array.isArray(value) ? `{${value.map((item) => JSON.stringify(item)).join(',')}}` : String(value)
  return pg.escapeLiteral(text)
}

/** How the statement runs: planned for these values, or for any, as a prepared one is after some runs. */
async function explain(mode: 'custom' | 'generic', text: string, values: unknown[]): Promise<Plan> {
  const run = (sql: string) => original.apply(client, [sql]) as Promise<pg.QueryResult>
  await run(`SET plan_cache_mode = force_${mode}_plan`)
  await run(`PREPARE list AS ${text}`)
  const given = values.length > 0 ? `(${values.map(literal).join(', ')})` : ''
  const { rows } = await run(`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE list${given}`)
  await run('DEALLOCATE list')
  return rows[0]['QUERY PLAN'][0].Plan
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const rowsOf = (node: Plan) => (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1)

function faultsOf(plan: Plan): string[] {
  const blocks = (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  const found = nodesOf(plan).flatMap((node) => {
    // Events have a table for each month.
    const table = (node['Relation Name'] ?? '').replace(/^event_.*/, 'event')
    const read = rowsOf(node) + (node['Rows Removed by Filter'] ?? 0) * (node['Actual Loops'] ?? 1)
    // A month may be empty.
    if (node['Node Type'] === 'Seq Scan' && large.has(table) && read > 0) return [`reads all of ${table}`]
    if (large.has(table) && read > maxRead) return [`reads ${read} rows of ${table}`]
    if ((node['Index Searches'] ?? 0) > maxSearches) return [`searches an index ${node['Index Searches']} times`]
    if (node['Node Type'].includes('Sort') && (node.Plans ?? []).some((input) => rowsOf(input) > maxRead)) {
      return [`sorts ${node.Plans!.map(rowsOf)} rows`]
    }
    return []
  })
  return blocks > maxBlocks ? [...found, `reads ${blocks} blocks`] : found
}

const known = new Map<string, string[]>()

async function faults({ text, values }: (typeof sent)[number]): Promise<string[]> {
  const key = JSON.stringify([text, values])
  const before = known.get(key)
  if (before) return before
  const found: string[] = []
  for (const mode of ['custom', 'generic'] as const) {
    for (const fault of faultsOf(await explain(mode, text, values))) {
      const shown = text.replace(/SELECT "public".*? FROM/, 'SELECT … FROM')
      found.push(`${fault} (${mode} plan): ${shown} ${JSON.stringify(values).slice(0, 300)}`)
    }
  }
  known.set(key, found)
  return found
}

async function check(path: string, token: string): Promise<{ faults: string[]; next: string | null }> {
  sent = []
  const answer = await api.call('GET', path, { token })
  if (answer.status !== 200) throw new Error(`GET ${path} was answered ${answer.text}`)
  const caught = sent.filter(({ text }) => /^\s*(SELECT|WITH)/i.test(text))
  expect(caught.length).toBeGreaterThan(0)
  const found: string[] = []
  for (const one of caught) found.push(...(await faults(one)).map((fault) => `${path}\n  ${fault}`))
  return { faults: found, next: answer.body.nextCursor ?? null }
}

const forAll = [
  'listAccounts',
  'listAllTickets',
  'listTakedowns',
  'listTicketMessagesAsSupport',
  'listNodes',
  'listFailedJobs',
]
const accountWide = [
  ...forAll,
  'listTickets',
  'listTicketMessages',
  'listTokens',
  'listWebhooks',
  'listDeliveries',
  'listMembers',
  'listInvitations',
]
// The events of some projects may be sorted where months are small; they are bounded by no index on project and type.
const wholeAccount = [...accountWide, 'listEvents']

// Lists that take no order.
const oldestFirst = ['getDeploymentLogs', 'listRuntimeLogs']

describe('reads a page and no more', () => {
  test('whatever it is filtered by, in both directions, on the first page and the next', async () => {
    const document = (api.app as unknown as { swagger(): ListDocument }).swagger()
    const lists = listsOf(document, seeded.paths)
    expect(lists.length).toBeGreaterThan(12)
    // Both are known from now on, so that only what lists ask is caught.
    for (const token of [seeded.token, seeded.narrowed]) await api.call('GET', '/regions', { token })
    const found: string[] = []
    for (const list of lists) {
      for (const token of wholeAccount.includes(list.id) ? [seeded.token] : [seeded.token, seeded.narrowed]) {
        for (const query of queriesOf(list)) {
          const isPair = query.includes('&')
          if (isPair && token === seeded.narrowed) continue
          for (const order of isPair || oldestFirst.includes(list.id) ? [''] : ['order=asc', 'order=desc']) {
            const path = `${list.path}?${[query, order].filter((part) => part !== '').join('&')}`
            const first = await check(path, token)
            found.push(...first.faults)
            if (first.next) found.push(...(await check(`${path}&cursor=${first.next}`, token)).faults)
          }
        }
      }
    }
    expect(found).toEqual([])
  })

  test('of each kind that is searched through', async () => {
    for (const token of [seeded.token, seeded.narrowed]) {
      for (const path of searches) expect((await check(path, token)).faults).toEqual([])
    }
    const found = (await api.call('GET', searches[0]!, { token: seeded.token })).body
    expect(found.projects).toHaveLength(5)
  })

  test('of the counters of an account, and of the projects that a token is narrowed to', async () => {
    for (const token of [seeded.token, seeded.narrowed]) {
      expect((await check('/account', token)).faults).toEqual([])
    }
    const { usage } = (await api.call('GET', '/account', { token: seeded.narrowed })).body
    const projects = ['prj_000000000000000000000001', 'prj_000000000000000000000002']
    expect(usage.deployments).toBe(await api.db.deployment.count({ where: { projectId: { in: projects } } }))
  })
})
