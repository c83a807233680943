// A small internet with a signed root: top-level domains, Berth's worker and two nameservers as processes of their own, Knot
// and BIND as secondaries of these, and validating resolvers that ask all of them, or one.
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keyName, type Peer, run, secret } from '../engines/nameserver/transfer/world.ts'
import { startApi, type TestApi } from '../helpers/api.ts'
import { type Link, openLink } from '../helpers/link.ts'
import { freePort } from '../helpers/ports.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'
import { type Parents, startParents } from './parents.ts'
import { startBind, startKnot, startResolver } from './peers.ts'

/** The platform's own zone, which has the names of its nameservers. */
export const platform = 'berth.net'
export const nameservers = [`ns1.${platform}`, `ns2.${platform}`] as const

export type DnssecWorld = {
  api: TestApi
  parents: Parents
  /** Of the servers of the zone, two of Berth, Knot, BIND: the address, and behind an @ the port if it is not 53. */
  servers: Record<'ns1' | 'ns2' | 'knot' | 'bind', string>
  /** `all` asks as the delegation says, each other one a single server. */
  resolvers: { name: string; address: string; peer: Peer }[]
  /** The environment of every process of Berth. */
  environment: Record<string, string>
  programs: Program[]
  /** The links of both nameservers to the database. */
  links: Link[]
  zone: string
  /** Starts the nameserver again at its place. */
  restart(index: 0 | 1, signal: NodeJS.Signals): Promise<void>
  /** The DS records of the platform's own zone at the registry of `net`, as whole lines. */
  setPlatformDs(ds: readonly string[]): Promise<void>
  /** What the registry of `com` has of the zone. */
  setDs(ds: readonly string[]): Promise<void>
  /** As if everything had been as it is for some hours longer: in the zone, or one below it. */
  later(hours: number, name?: string): Promise<void>
  /** Has the parent asked now, until the zone's signing is as wanted. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  reaches(what: (view: any) => boolean, name?: string): Promise<any>
  /** Waits until all servers show at least the serial that the database has now; of another zone than this one, our own. */
  settled(name?: string): Promise<void>
  digAt(server: string, ...args: string[]): Promise<string>
  /** What a resolver has logged of a name: why it did not take an answer. */
  logOf(resolver: string, name: string): string[]
  /** What delv says of a question at each resolver that is not `fully validated`. */
  unproved(questions: readonly (readonly [name: string, type: string])[]): Promise<string[]>
  stop(): Promise<void>
}

/** Whether servers may be on port 53, where delegations lead to. */
export async function mayServe(): Promise<boolean> {
  const socket = createSocket('udp4')
  socket.bind(53, `127.${randomInt(64, 192)}.${randomInt(256)}.9`)
  const open = await once(socket, 'listening').then(
    () => true,
    () => false,
  )
  socket.close()
  return open
}

const hourMs = 3_600_000

export async function startDnssecWorld(
  zone: string,
  below: ReadonlyMap<string, readonly string[]>,
): Promise<DnssecWorld> {
  const network = `127.${randomInt(64, 192)}.${randomInt(256)}`
  const servers = {
    ns1: `${network}.11`,
    ns2: `${network}.12`,
    knot: `${network}.13`,
    bind: `127.0.0.1@${await freePort()}`,
  }
  const primaries = [servers.ns1, servers.ns2]
  const closers: (() => unknown)[] = []
  const close = async () => {
    for (const one of closers.splice(0).reverse()) await one()
  }
  try {
    const parents = await startParents(`${network}.1`, `${network}.2`, below)
    closers.push(() => parents.stop())
    const outside = ['target.net. IN A 192.0.2.99', 'elsewhere.net. IN A 192.0.2.98']
    const glue = [`ns1.${platform}. IN A ${servers.ns1}`, `ns2.${platform}. IN A ${servers.ns2}`]
    const setPlatformDs = (ds: readonly string[]) =>
      parents.set('net', [...nameservers.map((name) => `${platform}. IN NS ${name}.`), ...glue, ...outside, ...ds])
    await setPlatformDs([])

    const resolvers: DnssecWorld['resolvers'] = []
    const only = Object.entries(servers).map(([name, server]) => ({ name, only: [{ zone, server }] }))
    for (const [index, one] of [{ name: 'all', only: [] }, ...only].entries()) {
      const address = `${network}.${21 + index}`
      const peer = await startResolver(address, parents, one.only)
      closers.push(() => peer.stop())
      resolvers.push({ name: one.name, address, peer })
    }

    // Both nameservers have the same places, from which the platform's zone is made, and each its own one on port 53.
    const others = [await freePort(), await freePort()]
    const settings = {
      NAMESERVERS: nameservers.join(),
      NAMESERVER_SECONDARIES: `${servers.knot}:53,${servers.bind.replace('@', ':')}`,
      NAMESERVER_TSIG: `${keyName}:${secret}`,
      DEPLOYMENT_DOMAIN: platform,
      EDGE_ADDRESSES: '192.0.2.80',
      DNS_RESOLVERS: `${network}.21`,
      // Zones are signed when a test says so.
      DNSSEC: 'off',
    }
    const api = await startApi({ ...settings, NAMESERVER_LISTEN: `${servers.ns1}:53,${servers.ns2}:53` })
    closers.push(() => api.stop())
    const data = await mkdtemp(join(tmpdir(), 'berth-dnssec-'))
    closers.push(() => rm(data, { recursive: true, force: true }))
    const environment = { ...settings, SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') }
    const programs: Program[] = []
    const links = [await openLink(api.databaseUrl), await openLink(api.databaseUrl)]
    for (const link of links) closers.push(() => link.close())
    async function startServer(index: 0 | 1): Promise<void> {
      const listen = [`${servers.ns1}:${others[0]}`, `${servers.ns2}:${others[1]}`]
      listen[index] = `${primaries[index]}:53`
      const own = join(data, String(index))
      await mkdir(own, { recursive: true })
      const program = await startProgram('nameserver', {
        ...environment,
        DATABASE_URL: links[index]!.url,
        DATA_DIR: own,
        NAMESERVER_LISTEN: listen.join(),
        NAMESERVER_WORKERS: String(index),
      })
      programs[index] = program
    }
    await Promise.all([startServer(0), startServer(1)])
    const worker = await startProgram('worker', {
      ...environment,
      DATABASE_URL: api.databaseUrl,
      DATA_DIR: data,
      NAMESERVER_LISTEN: `${servers.ns1}:53,${servers.ns2}:53`,
    })
    programs[2] = worker
    closers.push(() => Promise.all(programs.map(({ stop, child }) => child.exitCode ?? stop('SIGKILL'))))
    await Promise.all(programs.map((program) => program.ready()))
    const secondary = { zones: [zone, platform], primaries }
    for (const start of [
      () => startKnot(servers.knot, secondary),
      () => startBind(Number(servers.bind.split('@')[1]), secondary),
    ]) {
      const peer = await start()
      closers.push(() => peer.stop())
    }
    await api.newProject('site')

    const idOf = async (name: string) => (await api.db.domain.findFirstOrThrow({ where: { name } })).id
    const digAt = (server: string, ...args: string[]) => {
      const [address, port = '53'] = server.split('@')
      return run('dig', [`@${address}`, '-p', port, '+norec', '+tries=2', '+time=2', ...args])
    }
    return {
      api,
      parents,
      servers,
      resolvers,
      environment,
      programs,
      links,
      zone,
      digAt,
      logOf(resolver, name) {
        const log = resolvers.find((one) => one.name === resolver)?.peer.output() ?? ''
        return log.split('\n').filter((line) => line.includes(name))
      },
      async restart(index, signal) {
        await programs[index]!.stop(signal)
        await startServer(index)
      },
      setPlatformDs,
      setDs: (ds) =>
        parents.set('com', [
          ...nameservers.map((name) => `${zone}. IN NS ${name}.`),
          ...ds.map((text) => `${zone}. IN DS ${text}`),
        ]),
      async later(hours, name = zone) {
        const domainId = await idOf(name)
        const back = (time: Date | null) => time && new Date(time.getTime() - hours * hourMs)
        for (const { id, createdAt } of await api.db.zoneKey.findMany({ where: { domainId } })) {
          await api.db.zoneKey.update({ where: { id }, data: { createdAt: back(createdAt)! } })
        }
        const { dsSince, goneSince } = await api.db.zoneSigning.findUniqueOrThrow({ where: { domainId } })
        await api.db.zoneSigning.update({
          where: { domainId },
          data: { dsSince: back(dsSince), goneSince: back(goneSince) },
        })
      },
      async reaches(what, name = zone) {
        const key = await idOf(name)
        return until(async () => {
          const { body } = await api.call('GET', `/dns/${name}/dnssec`)
          if (what(body)) return body
          await api.db.job.updateMany({ where: { kind: 'dnssec', key, lockedBy: null }, data: { runAt: new Date() } })
          return false
        }, 60_000)
      },
      async settled(name = zone) {
        const { serial } = await api.db.domain.findFirstOrThrow({ where: { name } })
        // It grows meanwhile.
        const serialAt = async (server: string) => Number((await digAt(server, name, 'SOA', '+short')).split(' ')[2])
        for (const server of name === zone ? Object.values(servers) : primaries) {
          await until(async () => (await serialAt(server)) >= serial, 60_000)
        }
      },
      async unproved(questions) {
        const anchors = join(data, 'anchors')
        const [flags, protocol, algorithm, ...key] = parents.anchor.split(' ')
        await writeFile(
          anchors,
          `trust-anchors { "." static-key ${flags} ${protocol} ${algorithm} "${key.join('')}"; };\n`,
        )
        const found: string[] = []
        for (const { name: resolver, address } of resolvers) {
          for (const [name, type] of questions) {
            const said = await run('delv', [`@${address}`, '-a', anchors, '+root=.', name, type])
            if (!/fully validated/.test(said)) found.push(`${name} ${type} by ${resolver}: ${said}`)
          }
        }
        return found
      },
      stop: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
