// What the API has acknowledged, and how it compares with what the API answers later.
import pg from 'pg'
import type { Client } from './client.ts'

export const kinds = [
  'project',
  'deployment',
  'production',
  'domain',
  'record',
  'ticket',
  'message',
  'token',
  'webhook',
  'variable',
] as const
export type Kind = (typeof kinds)[number]

type Fields = Record<string, unknown>

/** An event that a write must have left in the log, this many times. */
export type Expected = { type: string; subject: string; times: number }

export type Comparison = { lost: string[]; repeated: string[]; unfinished: string[] }

export class Ledger {
  readonly #live = new Map<Kind, Map<string, Fields>>(kinds.map((kind) => [kind, new Map()]))
  readonly #gone = new Map<Kind, Set<string>>(kinds.map((kind) => [kind, new Set()]))
  /** By kind: what was made, changed and deleted. */
  readonly acknowledged = new Map<Kind, number>(kinds.map((kind) => [kind, 0]))
  readonly #events = new Map<string, Expected>()

  /** Made, or changed: then it has the other fields it had before, too. */
  put(kind: Kind, key: string, fields: Fields, event?: [type: string, subject: string]): void {
    const live = this.#live.get(kind)!
    live.set(key, { ...live.get(key), ...fields })
    this.#gone.get(kind)!.delete(key)
    this.#acknowledge(kind, event)
  }

  drop(kind: Kind, key: string, event?: [type: string, subject: string]): void {
    this.forget(kind, key)
    this.#acknowledge(kind, event)
  }

  /** Goes along with something else that was deleted. */
  forget(kind: Kind, key: string): void {
    this.#live.get(kind)!.delete(key)
    this.#gone.get(kind)!.add(key)
  }

  /** What is there besides. */
  adopt(found: Map<Kind, Found[]>): void {
    for (const [kind, rows] of found)
      for (const { key } of rows) {
        const live = this.#live.get(kind)!
        if (!live.has(key)) live.set(key, {})
      }
  }

  /** What was made here and is there still. */
  made(kind: Kind): Set<string> {
    return new Set(
      [...this.#live.get(kind)!].filter(([, fields]) => Object.keys(fields).length > 0).map(([key]) => key),
    )
  }

  get events(): Expected[] {
    return [...this.#events.values()]
  }

  #acknowledge(kind: Kind, event?: [type: string, subject: string]): void {
    this.acknowledged.set(kind, this.acknowledged.get(kind)! + 1)
    if (!event) return
    const [type, subject] = event
    const known = this.#events.get(`${type} ${subject}`)
    if (known) known.times++
    else this.#events.set(`${type} ${subject}`, { type, subject, times: 1 })
  }

  /** Everything that the account has, against everything that was acknowledged. */
  async compare(client: Client): Promise<Map<Kind, Comparison>> {
    const found = await readAll(client)
    return new Map(kinds.map((kind) => [kind, this.#compareKind(kind, found.get(kind)!)]))
  }

  #compareKind(kind: Kind, found: Found[]): Comparison {
    const comparison: Comparison = { lost: [], repeated: [], unfinished: [] }
    const byKey = new Map<string, Found>()
    for (const one of found) {
      if (byKey.has(one.key)) comparison.repeated.push(`${kind} ${one.key} is there twice`)
      byKey.set(one.key, one)
      if (one.unfinished) comparison.unfinished.push(`${kind} ${one.key}: ${one.unfinished}`)
      if (this.#gone.get(kind)!.has(one.key)) comparison.lost.push(`${kind} ${one.key} was deleted and is there`)
      else if (!this.#live.get(kind)!.has(one.key))
        comparison.repeated.push(`${kind} ${one.key} was never acknowledged`)
    }
    for (const [key, fields] of this.#live.get(kind)!) {
      const there = byKey.get(key)
      if (!there) comparison.lost.push(`${kind} ${key}`)
      for (const [name, value] of Object.entries(there ? fields : {})) {
        const shown = there!.fields[name]
        if (JSON.stringify(shown) !== JSON.stringify(value))
          comparison.lost.push(`${kind} ${key}: ${name} is ${JSON.stringify(shown)}, not ${JSON.stringify(value)}`)
      }
    }
    return comparison
  }
}

type Found = { key: string; fields: Fields; unfinished?: string | undefined }
type Row = Fields & { id: string; name: string }

/** All resources of the account, as the API shows them. */
export async function readAll(client: Client): Promise<Map<Kind, Found[]>> {
  const all = new Map<Kind, Found[]>(kinds.map((kind) => [kind, []]))
  const add = (kind: Kind, key: string, fields: Fields, unfinished?: string) =>
    void all.get(kind)!.push({ key, fields, unfinished })
  for (const row of await client.list<Row>('/projects', 'projects')) {
    add('project', row.id, { ...row, spaFallback: (row.settings as Fields).spaFallback })
    const { body } = await client.call<{ env: Row[] }>('GET', `/projects/${row.id}/env`)
    for (const variable of body.env) add('variable', `${row.id} ${variable.key} ${variable.target}`, variable)
  }
  for (const row of await client.list<Row>('/deployments', 'deployments')) {
    add('deployment', row.id, row, row.state === 'BUILDING' ? 'is BUILDING' : undefined)
    if (row.current) add('production', row.project as string, { current: row.id })
  }
  for (const row of await client.list<Row>('/domains', 'domains')) {
    const waits = `verified ${row.verified}, certificate ${row.ssl}`
    add('domain', row.name, row, isSettled(row) ? undefined : waits)
    for (const one of await client.list<Row>(`/dns/${row.name}/records`, 'records')) {
      add('record', recordKey(row.name, one), one)
    }
  }
  for (const row of await client.list<Row>('/tickets', 'tickets')) {
    add('ticket', row.id, row)
    for (const { message } of await client.list<Row>(`/tickets/${row.id}/messages`, 'messages')) {
      add('message', `${row.id} ${message}`, {})
    }
  }
  for (const row of await client.list<Row>('/tokens', 'tokens')) add('token', row.id, row)
  for (const row of await client.list<Row>('/webhooks', 'webhooks')) add('webhook', row.id, row)
  return all
}

const isSettled = ({ verified, ssl }: Fields) => verified === true && ssl === 'ACTIVE'

/** Whether every deployment has ended and every domain has its certificate. */
export async function isAtRest(client: Client): Promise<boolean> {
  const building = await client.list('/deployments?state=BUILDING', 'deployments')
  const domains = await client.list<Row>('/domains', 'domains')
  return building.length === 0 && domains.every(isSettled)
}

/** A worker that lost its job after READY, by its own end or the database's, has left a directory to whoever takes it next. */
export async function hasNoBuilds(databaseUrl: string): Promise<boolean> {
  const database = new pg.Client({ connectionString: databaseUrl })
  await database.connect()
  try {
    const { rows } = await database.query(`SELECT id FROM job WHERE kind = 'build' AND failed_at IS NULL`)
    return rows.length === 0
  } finally {
    await database.end()
  }
}

/** Records that an import makes have ids that nobody was told. */
export function recordKey(domain: string, { name, type, value }: Fields): string {
  return `${domain} ${name} ${type} ${value}`
}
