// Starts the platform by role, writes to it and visits it while its processes are killed, and counts what came of it.
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { randomNumbers } from '../../bench/dns/mix.ts'
import { commitTo, createRepository } from '../helpers/repository.ts'
import { until } from '../helpers/until.ts'
import { proveBackup } from './backup.ts'
import { type Client, createClient } from './client.ts'
import {
  type Compared,
  compareIds,
  compareWrites,
  disorderOf,
  type Event,
  followEvents,
  readLog,
  startReceiver,
} from './events.ts'
import { killAtRandom, type Victim } from './kills.ts'
import { hasNoBuilds, isAtRest, Ledger, readAll } from './ledger.ts'
import { leakedDirectories, orphans, Traces } from './leftovers.ts'
import { type Platform, startPlatform } from './processes.ts'
import { type Visits, visit } from './visitors.ts'
import { createWriter, repository, tags } from './writers.ts'

export type ProveOptions = {
  kills: number
  durationMs: number
  seed: number
  writers?: number
  /** How many edges and nameservers stand in for each other. */
  replicas?: number
  inTurn?: readonly Victim[]
  backup?: boolean
  /** After each kill. */
  killed?(victim: Victim, platform: Platform): Promise<void>
  say?(line: string): void
  /** Ends everything before its time. */
  signal?: AbortSignal
}

export type Row = { name: string; acknowledged: number; lost: string[]; repeated: string[]; unfinished: string[] }

export type Report = {
  rows: Row[]
  kills: Map<Victim, number>
  visits: Record<string, Visits>
  /** Deliveries that came more than once, as they may after a kill. */
  redelivered: number
  refused: string[]
  internalErrors: string[]
  orphans: string[]
  leaked: string[]
  /** Null: there is no backup to take. */
  restored: string[] | null
}

const settleMs = 180_000
const pauseMs = 300
const text = 'Hello from Berth'

export async function prove(options: ProveOptions): Promise<Report> {
  const { kills, durationMs, seed, writers = 4, replicas = 2, say = () => {} } = options
  const directory = await mkdtemp(join(tmpdir(), 'berth-prove-'))
  await chmod(directory, 0o711)
  const mark = basename(directory)
  const closers: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
  try {
    say(`seed ${seed}, in ${directory}`)
    const platform = await startPlatform({ directory, edges: replicas, nameservers: replicas })
    closers.push(platform.stop)
    const repos = join(directory, 'data/repos')
    await createRepository(repos, repository, { 'index.html': '<h1>main</h1>\n' })
    for (const tag of tags) await commitTo(repos, repository, tag, { 'index.html': `<h1>${tag}</h1>\n` })
    const token = (await readFile(join(directory, 'data/test-key'), 'utf8')).trim()
    const clientOf = (origin: string) => createClient(() => origin, token)
    const client = clientOf(platform.origin)
    const { host, domain } = await furnish(client)
    const receiver = await startReceiver()
    closers.push(() => receiver.close())
    const { body: webhook } = await client.call<{ id: string }>('POST', '/webhooks', {
      url: `${receiver.url}all`,
      events: ['*'],
    })
    await client.call('POST', `/webhooks/${webhook.id}/ping`)
    const [first] = (await client.call<{ events: { id: string }[] }>('GET', '/events?type=webhook.ping')).body.events
    const from = first!.id
    const ledger = new Ledger()
    ledger.adopt(await readAll(client))

    const writing = new AbortController()
    const watching = new AbortController()
    closers.push(async () => [writing, watching].map((one) => one.abort()))
    const random = randomNumbers(seed)
    const tenants = Array.from({ length: writers }, (_, at) =>
      createWriter({
        name: `w${at}`,
        client,
        ledger,
        random: randomNumbers(seed + at + 1),
        mark,
        receiverUrl: receiver.url,
      }),
    )
    const written = Promise.all(tenants.map((tenant) => tenant.run(writing.signal)))
    const visited = visit({
      edges: platform.edgePorts.map((ports) => ({ address: '127.0.0.1', ...ports })),
      nameservers: platform.dnsPorts.map((port) => ({ address: '127.0.0.1', port })),
      pages: { HTTP: { host, text }, HTTPS: { host: domain, text, secure: true } },
      domain,
      signal: watching.signal,
    })
    const seen: string[] = []
    const read = followEvents({ origin: platform.origin, token, from, signal: watching.signal }, seen)
    const traces = new Traces()
    say(`${kills} kills in ${(durationMs / 1000).toFixed(0)} s …`)
    const struck = await killAtRandom({
      ...options,
      platform,
      mark,
      random,
      look: () => traces.look(platform.roles.map(({ pid }) => pid)),
      killed: async (victim) => options.killed?.(victim, platform),
    })
    say('everything up again …')
    await platform.up()
    options.signal?.throwIfAborted()
    writing.abort()
    await written
    say('waiting for what is under way …')
    const atRest = async () => (await isAtRest(client)) && hasNoBuilds(platform.environment.DATABASE_URL!)
    await until(async () => (await atRest()) || sleep(pauseMs, false), settleMs).catch(() => {})
    const log = await caughtUp(client, from, [receiver.received, seen])
    const compared = await ledger.compare(client)
    const restored =
      options.backup === false
        ? null
        : await proveBackup({ directory, environment: platform.environment, client, clientOf })
    watching.abort()
    await read
    const visits = await visited

    const found = await readAll(client)
    const kept = {
      deployments: new Set(found.get('deployment')!.map(({ key }) => key)),
      projects: new Set(found.get('project')!.map(({ key }) => key)),
    }
    // Files of what was deleted go by a job, a moment later.
    const leaking = () => leakedDirectories(directory, kept)
    await until(() => leaking().length === 0).catch(() => {})
    const leaked = leaking()
    say('stopping …')
    await platform.stop()
    await until(() => orphans(mark).length === 0 && traces.left.length === 0).catch(() => {})

    const rows: Row[] = [...compared].map(([name, one]) => ({
      name,
      acknowledged: ledger.acknowledged.get(name)!,
      ...one,
    }))
    const row = (name: string, acknowledged: number, { lost, repeated }: Compared) =>
      rows.push({ name, acknowledged, lost, repeated, unfinished: [] })
    row('events in the log', ledger.events.length, compareWrites(log, ledger.events, ledger.made('deployment')))
    const stream = compareIds(log, seen, 'stream')
    stream.lost.push(...disorderOf(log, seen, 'stream'))
    row('events by stream', log.length, stream)
    const delivered = compareIds(log, receiver.received, 'webhook')
    row('events by webhook', log.length, { lost: delivered.lost, repeated: [] })
    return {
      rows,
      kills: struck,
      visits,
      redelivered: delivered.repeated.length,
      refused: tenants.flatMap(({ faults }) => faults),
      internalErrors: client.internalErrors,
      orphans: orphans(mark),
      leaked: [...leaked, ...traces.left],
      restored,
    }
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** What visitors see all the while: a page, and a domain with a certificate. */
async function furnish(client: Client): Promise<{ host: string; domain: string }> {
  const domain = 'visited.test'
  const { body: made } = await client.call<{ id: string }>('POST', '/deployments', {
    project: 'hello',
    production: true,
  })
  const ready = async () => {
    const { body } = await client.call<{ state: string; url: string }>('GET', `/deployments/${made.id}?wait=10`)
    return body.state === 'READY' && body
  }
  const { url } = await until(ready, settleMs)
  await client.call('POST', '/domains', { project: 'hello', name: domain })
  await until(
    async () => (await client.call<{ ssl: string }>('GET', `/domains/${domain}?wait=10`)).body.ssl === 'ACTIVE',
    settleMs,
  )
  return { host: new URL(url).host, domain }
}

/** The log, once every reader has all of it, or nothing comes any more. */
async function caughtUp(client: Client, from: string, readers: string[][]): Promise<Event[]> {
  let log: Event[] = []
  const haveAll = async () => {
    log = await readLog(client, from)
    const isRead = readers.every((seen) => compareIds(log, seen, '').lost.length === 0)
    return isRead || sleep(pauseMs, false)
  }
  await until(haveAll, settleMs).catch(() => {})
  return log
}
