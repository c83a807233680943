// Every list of the API with every filter and every pair of filters, from its OpenAPI document.
import { commonCommit, rareRef, rareWord } from './seed.ts'

type Parameter = { in: string; name: string; schema: { type?: string } }

export type ListDocument = {
  paths: Record<string, Record<string, { operationId: string; parameters?: Parameter[] }>>
}

export type List = { id: string; path: string; filters: { name: string; values: string[] }[] }

/** Filter values: a common, a rare and a missing one; then several together. */
const values: Record<string, string[]> = {
  project: ['site-1', 'site-3', 'nowhere', 'site-1,site-3'],
  state: ['READY', 'BUILDING', 'ERROR', 'BUILDING,ERROR'],
  ref: ['main', rareRef, 'nowhere'],
  commit: [commonCommit, commonCommit.slice(0, 7), '0000000'],
  status: ['CLOSED', 'OPEN', 'WAITING', 'OPEN,WAITING'],
  priority: ['normal', 'urgent', 'low', 'urgent,low'],
  ssl: ['ACTIVE', 'ERROR', 'EXPIRED', 'ERROR,EXPIRED'],
  framework: ['static', 'astro', 'hugo'],
  repo: ['owner/site-1', 'owner/nowhere'],
  search: ['site', 'nowhere'],
  since: ['1970-01-01T00:00:00Z', '2970-01-01T00:00:00Z'],
  until: ['1970-01-01T00:00:00Z', '2970-01-01T00:00:00Z'],
  name: ['host-4', 'zz', 'nowhere'],
}
const words = ['question', `quest ${rareWord}`, 'nowhere', '-']
const ofList: Record<string, Record<string, string[]>> = {
  listDomains: { search: ['zone', 'nowhere'] },
  listTickets: { search: words },
  listAllTickets: { search: words },
  listDnsRecords: { type: ['A', 'MX', 'SRV'] },
  listDnsRrsets: { type: ['A', 'MX', 'SRV'] },
  listRuntimeLogs: { instance: ['0', '9'], stream: ['stdout', 'stderr'] },
  listEvents: {
    type: ['account.created', 'account.resumed', 'ticket.created', 'account.*', 'account.resumed,ticket.*'],
    subject: ['dpl_000000000000000000000001', 'nowhere'],
  },
}

export function listsOf(document: ListDocument, paths: Record<string, string>): List[] {
  return Object.entries(document.paths).flatMap(([template, { get }]) => {
    const query = (get?.parameters ?? []).filter((parameter) => parameter.in === 'query')
    if (!get || !query.some(({ name }) => name === 'cursor')) return []
    const found = paths[template]?.split(' ') ?? []
    const path = template.replace(/\{\w+\}/g, () => {
      const value = found.shift()
      if (value === undefined) throw new Error(`${template} has no path to be tried with`)
      return value
    })
    const filters = query
      .filter(({ name }) => !['limit', 'cursor', 'order'].includes(name))
      .map(({ name, schema }) => {
        const known = schema.type === 'boolean' ? ['true', 'false'] : (ofList[get.operationId]?.[name] ?? values[name])
        if (!known) throw new Error(`${get.operationId} has a filter ${name} that is not tried`)
        return { name, values: known }
      })
    return [{ id: get.operationId, path, filters }]
  })
}

/** Searches for common, rare and missing text. */
export const searches = ['site', 'main', commonCommit, 'question', rareWord, 'nowhere'].map((q) => `/search?q=${q}`)

// Limits on the ID, like cursors: only tried alone.
const bounds = ['since', 'until']

/** The list without filters, with each value of each filter, and with each pair of single-value filters. */
export function queriesOf({ filters }: List): string[] {
  const singles = filters.map(({ name, values }) => values.map((value) => `${name}=${encodeURIComponent(value)}`))
  const paired = singles.filter((_, index) => !bounds.includes(filters[index]!.name)).map((one) => one.slice(0, 3))
  const pairs = paired.flatMap((first, index) =>
    paired.slice(index + 1).flatMap((second) => first.flatMap((one) => second.map((other) => `${one}&${other}`))),
  )
  return ['', ...singles.flat(), ...pairs]
}
