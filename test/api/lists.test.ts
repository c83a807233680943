// Every list with every filter and every pair of them reads a page from an index, however large its tables are.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type ListDocument, listsOf, queriesOf } from '../../bench/lists/requests.ts'
import { type Seeded, seed } from '../../bench/lists/seed.ts'
import { startApi, type TestApi } from '../helpers/api.ts'

const sizes = {
  accounts: 1_000,
  projects: 60,
  deployments: 12_000,
  domains: 80,
  records: 8_000,
  tickets: 8_000,
  tokens: 4_000,
  deliveries: 4_000,
  takedowns: 4_000,
  events: 100,
}
// Tables of which a customer or the platform has more than a list may read through.
const large = new Set([
  ...['account', 'project', 'deployment', 'log_line', 'domain', 'dns_record', 'ticket', 'ticket_message', 'token'],
  ...['webhook', 'delivery', 'takedown'],
])
// Some pages of 20, as many as there are combinations of filters with few values. No account has more projects, domains
// or webhooks than its quota, so these may be read through.
const mostRead = 400

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
  Plans?: Plan[]
}

async function explain(options: string, text: string, values?: unknown[]): Promise<Plan> {
  const answer = (await original.apply(client, [`EXPLAIN (${options}, FORMAT JSON) ${text}`, values])) as pg.QueryResult
  return answer.rows[0]['QUERY PLAN'][0].Plan
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const rowsOf = (node: Plan) => (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1)

function faultsOf(plan: Plan): string[] {
  return nodesOf(plan).flatMap((node) => {
    const table = node['Relation Name'] ?? ''
    const read = rowsOf(node) + (node['Rows Removed by Filter'] ?? 0) * (node['Actual Loops'] ?? 1)
    if (node['Node Type'] === 'Seq Scan' && large.has(table)) return [`reads all of ${table}`]
    if (large.has(table) && read > mostRead) return [`reads ${read} rows of ${table}`]
    if (node['Node Type'].includes('Sort') && (node.Plans ?? []).some((input) => rowsOf(input) > mostRead)) {
      return [`sorts ${node.Plans!.map(rowsOf)} rows`]
    }
    return []
  })
}

const known = new Map<string, string[]>()

/** What is wrong with a statement: as it is planned for these values, and for any, as a prepared one may be. */
async function faults({ text, values }: (typeof sent)[number]): Promise<string[]> {
  const key = JSON.stringify([text, values])
  const before = known.get(key)
  if (before) return before
  const custom = faultsOf(await explain('ANALYZE, TIMING OFF, BUFFERS OFF', text, values))
  const generic = faultsOf(await explain('GENERIC_PLAN', text))
  const found = [...custom, ...generic.map((fault) => `${fault} in the generic plan`)].map(
    (fault) => `${fault}: ${text.replace(/SELECT "public".*? FROM/, 'SELECT … FROM')} ${JSON.stringify(values)}`,
  )
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

/** Those of events are partitioned by month and tested by themselves. */
const elsewhere = ['listEvents']
const forAll = ['listAccounts', 'listAllTickets', 'listTakedowns', 'listTicketMessagesAsSupport']
const accountWide = [...forAll, 'listTickets', 'listTicketMessages', 'listTokens', 'listWebhooks', 'listDeliveries']

describe('reads a page and no more', () => {
  test('whatever it is filtered by, in both directions, on the first page and the next', async () => {
    const document = (api.app as unknown as { swagger(): ListDocument }).swagger()
    const lists = listsOf(document, seeded.paths).filter(({ id }) => !elsewhere.includes(id))
    expect(lists.length).toBeGreaterThan(12)
    // Both are known from now on, so that only what lists ask is caught.
    for (const token of [seeded.token, seeded.narrowed]) await api.call('GET', '/regions', { token })
    const found: string[] = []
    for (const list of lists) {
      for (const token of accountWide.includes(list.id) ? [seeded.token] : [seeded.token, seeded.narrowed]) {
        for (const query of queriesOf(list)) {
          const isPair = query.includes('&')
          if (isPair && token === seeded.narrowed) continue
          for (const order of isPair || list.id === 'getDeploymentLogs' ? [''] : ['order=asc', 'order=desc']) {
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

  test('of the counters of an account, and of the projects that a token is narrowed to', async () => {
    for (const token of [seeded.token, seeded.narrowed]) {
      expect((await check('/account', token)).faults).toEqual([])
    }
    const { usage } = (await api.call('GET', '/account', { token: seeded.narrowed })).body
    const projects = ['prj_000000000000000000000001', 'prj_000000000000000000000002']
    expect(usage.deployments).toBe(await api.db.deployment.count({ where: { projectId: { in: projects } } }))
  })
})
