// Ends every node of an installation in turn, under writes and visitors, and tells how long it took to be whole again.
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { randomNumbers } from '../../bench/dns/mix.ts'
import { until } from '../helpers/until.ts'
import { createClient } from '../prove/client.ts'
import { compareWrites, readLog, startReceiver } from '../prove/events.ts'
import { isAtRest, Ledger, readAll } from '../prove/ledger.ts'
import { type Visits, visit } from '../prove/visitors.ts'
import { createWriter } from '../prove/writers.ts'
import { furnish, instances, spend } from './day.ts'
import { edgeOf, type Layout, nameserverOf, openInstallation, originOf } from './installation.ts'
import type { End, Node } from './node.ts'

export type ClusterOptions = {
  layout: Layout
  /** Names of the nodes to end, and how; all, if left out. */
  ends?: [name: string, how: End][]
  writers?: number
  seed: number
  say?(line: string): void
  signal?: AbortSignal
}

/** Milliseconds, or why not. */
export type Healing = { node: string; how: End; without: number | string; with: number | string }

export type Report = {
  healings: Healing[]
  acknowledged: number
  lost: string[]
  repeated: string[]
  unfinished: string[]
  visits: Record<string, Visits>
  internalErrors: string[]
  refused: string[]
}

const settleMs = 180_000
export const healMs = 30_000

export async function runCluster(options: ClusterOptions): Promise<Report> {
  const { layout, seed, writers = 3, say = () => {} } = options
  say(`seed ${seed}`)
  const installation = await openInstallation(layout, say)
  const { nodes, of, token } = installation
  const closers: (() => unknown)[] = [() => installation.close()]
  try {
    /** As a balancer that ends TLS and asks one API server after the other. */
    const clientOf = (servers: Node[]) =>
      createClient(inTurn(servers.map(originOf)), token, { 'x-forwarded-proto': 'https' })
    const client = clientOf(of('api'))
    const ledger = new Ledger()
    const [last] = (await client.call<{ events: { id: string }[] }>('GET', '/events?limit=1')).body.events
    const furnished = await furnish(client, ledger, installation.serverRepository)
    say('a site, a server project and a domain are there')
    const receiver = await startReceiver()
    closers.push(() => receiver.close())
    ledger.adopt(await readAll(client))
    const writing = new AbortController()
    const watching = new AbortController()
    closers.push(() => [writing, watching].map((one) => one.abort()))
    const tenants = Array.from({ length: writers }, (_, at) =>
      createWriter({
        name: `w${at}`,
        client,
        ledger,
        random: randomNumbers(seed + at),
        mark: basename(installation.directory),
        receiverUrl: receiver.url,
      }),
    )
    const written = Promise.all(tenants.map((tenant) => tenant.run(writing.signal)))
    const visited = visit({
      edges: of('edge').map(edgeOf),
      nameservers: [...of('nameserver'), ...of('knot')].map(nameserverOf),
      pages: {
        HTTP: { host: furnished.site, text: '<h1>' },
        HTTPS: { host: furnished.domain, text: '<h1>', secure: true },
        servers: { host: furnished.app, text: 'mark-' },
      },
      domain: furnished.domain,
      signal: watching.signal,
    })

    const database = new pg.Client({ connectionString: installation.databaseUrl })
    await database.connect()
    closers.push(() => database.end())
    const nodesOfServers = async () => {
      const sql = "SELECT count(DISTINCT node)::int AS count FROM instance WHERE state = 'healthy' AND slot < 100"
      return (await database.query<{ count: number }>(sql)).rows[0]!.count
    }

    let number = 0
    /** How long a day takes that is spent with these nodes. */
    async function day(alive: Node[]): Promise<number | string> {
      const among = (role: string) => alive.filter((node) => node.role === role)
      // A secondary has its zones from the first nameserver.
      const secondaries = alive.includes(of('nameserver')[0]!) ? among('knot') : []
      try {
        const took = await spend({
          ...furnished,
          ledger,
          client: clientOf(among('api')),
          edges: among('edge').map(edgeOf),
          nameservers: [...among('nameserver'), ...secondaries].map(nameserverOf),
          isSpread: async () => (await nodesOfServers()) === Math.min(instances, among('runner').length),
          number: ++number,
        })
        say(`    site ${seconds(took.site)}, server ${seconds(took.server)}, dns ${seconds(took.dns)}`)
        return Math.max(...Object.values(took))
      } catch (error) {
        return (error as Error).message
      }
    }

    say(`before: ${seconds(await day(nodes))}`)
    const healings: Healing[] = []
    for (const [name, how] of options.ends ?? everyNode(nodes)) {
      options.signal?.throwIfAborted()
      const node = nodes.find((one) => one.name === name)!
      await node.end(how)
      say(`${name} is gone (${how})`)
      const without = await day(nodes.filter((one) => one !== node))
      const startMs = performance.now()
      await node.start()
      await installation.up([node])
      const startedMs = performance.now() - startMs
      const rest = await day(nodes)
      const healing = { node: name, how, without, with: typeof rest === 'number' ? startedMs + rest : rest }
      healings.push(healing)
      say(`${name}: whole without it after ${seconds(without)}, with it again after ${seconds(healing.with)}`)
    }
    writing.abort()
    await written
    say('waiting for what is under way …')
    await until(async () => (await isAtRest(client)) || sleep(500, false), settleMs).catch(() => {})
    const log = await readLog(client, last!.id)
    const compared = [...(await ledger.compare(client)).values()]
    const events = compareWrites(log, ledger.events, ledger.made('deployment'))
    watching.abort()
    return {
      healings,
      acknowledged: [...ledger.acknowledged.values()].reduce((sum, one) => sum + one, 0),
      lost: [...compared.flatMap(({ lost }) => lost), ...events.lost],
      repeated: [...compared.flatMap(({ repeated }) => repeated), ...events.repeated],
      unfinished: compared.flatMap(({ unfinished }) => unfinished),
      visits: await visited,
      internalErrors: client.internalErrors,
      refused: tenants.flatMap(({ faults }) => faults),
    }
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** Each after the other, so that a request that was not answered is repeated elsewhere. */
function inTurn(origins: string[]): () => string {
  let next = 0
  return () => origins[next++ % origins.length]!
}

/** The first of each kind is killed, the second lost with its machine. */
function everyNode(nodes: Node[]): [string, End][] {
  return nodes.map(({ name }) => [name, name.endsWith('-2') ? 'loss' : 'kill'])
}

export const seconds = (value: number | string) =>
  typeof value === 'number' ? `${(value / 1000).toFixed(1)} s` : value
