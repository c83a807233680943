// An installation on many machines, and what is around it: PostgreSQL, a bucket, a repository host.
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDnsClient } from '../../bench/dns/client.ts'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import type { BucketOptions } from '../../src/platform/artifacts/bucket/client.ts'
import { type Role, roles } from '../../src/roles/run.ts'
import { forward } from '../helpers/forward.ts'
import { startGitHost } from '../helpers/git-host.ts'
import { startRadosgw } from '../helpers/radosgw.ts'
import { commitTo, createRepository } from '../helpers/repository.ts'
import { startS3 } from '../helpers/s3.ts'
import { until } from '../helpers/until.ts'
import { isStarted } from '../prove/processes.ts'
import { repository, tags } from '../prove/writers.ts'
import { type Machine, openNetwork } from './network.ts'
import { createNode, type Node } from './node.ts'

export type Layout = Record<Role, number> & {
  /** How many Knot servers answer for the nameservers. */
  knot: number
  /** Ceph's S3 service, or one in the memory of this process. */
  store: 'radosgw' | 'memory'
}

export type Installation = {
  nodes: Node[]
  of(role: string): Node[]
  /** Of the account that the first start has made. */
  token: string
  serverRepository: string
  directory: string
  /** As the machines reach it. */
  databaseUrl: string
  /** Resolves when the nodes serve. */
  up(nodes: Node[]): Promise<void>
  close(): Promise<void>
}

const ports = { api: 3000, metrics: 9090, http: 80, https: 443, dns: 53, runner: 7000 }
const program = join(import.meta.dirname, '../../dist/src/cli.js')
const startMs = 120_000
const serverRepository = 'prove/app'
/** Each of its processes answers with a mark of its own. */
const serverFiles = {
  'package.json': JSON.stringify({ name: 'app', private: true, scripts: { start: 'node server.js' } }),
  'server.js': `
    const mark = 'mark-' + require('node:crypto').randomUUID()
    require('node:http').createServer((request, response) => response.end(mark)).listen(process.env.PORT)`,
}
const key = { name: 'transfer.berth.test', secret: Buffer.alloc(32, 9).toString('base64') }

export async function openInstallation(layout: Layout, say: (line: string) => void): Promise<Installation> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-cluster-'))
  await chmod(directory, 0o711)
  const closers: (() => unknown)[] = [() => rm(directory, { recursive: true, force: true })]
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    const network = await openNetwork()
    closers.push(() => network.close())
    /** What listens on loopback, where the machines find it. */
    const published = async (url: string) => {
      const found = new URL(url)
      const server = await forward(network.outside, Number(found.port), Number(found.port))
      closers.push(() => server.close())
      return url.replace('127.0.0.1', network.outside)
    }
    const postgres = await startEmbeddedPostgres({ directory: join(directory, 'postgres'), maxConnections: 300 })
    closers.push(() => postgres.stop())
    const bucket = await openBucket(layout.store)
    closers.push(() => bucket.close())
    const git = await openRepositories(join(directory, 'repositories'))
    closers.push(() => git.close())
    say(`PostgreSQL, ${layout.store} and a repository host at ${network.outside}`)

    const machines = new Map<string, Machine[]>()
    for (const kind of [...roles, 'knot'] as const) {
      const made: Machine[] = []
      for (let n = 1; n <= layout[kind]; n++) made.push(await network.machine(`${kind}-${n}`))
      machines.set(kind, made)
    }
    const addresses = (kind: string) => machines.get(kind)!.map(({ address }) => address)
    const nameservers = addresses('nameserver').map((address) => `${address}:${ports.dns}`)
    const { options } = bucket
    const shared: Record<string, string> = {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: await published(postgres.url('postgres')),
      DATABASE_POOL: '6',
      DATABASE_WORKER_POOL: '6',
      SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      HOST: '0.0.0.0',
      PORT: String(ports.api),
      METRICS_PORT: String(ports.metrics),
      TRUSTED_PROXIES: network.outside,
      BASE_URL: `http://${addresses('api')[0]}:${ports.api}`,
      DEPLOYMENT_DOMAIN: 'sites.test',
      EDGE_HTTP_PORT: String(ports.http),
      EDGE_HTTPS_PORT: String(ports.https),
      EDGE_ADDRESSES: addresses('edge').join(','),
      NAMESERVER_LISTEN: nameservers.join(','),
      NAMESERVER_WORKERS: '0',
      NAMESERVER_TSIG: `${key.name}:${key.secret}`,
      NAMESERVER_SECONDARIES: addresses('knot')
        .map((address) => `${address}:${ports.dns}`)
        .join(','),
      GIT_URL_TEMPLATE: await published(git.template),
      ARTIFACTS_URL: `s3://${options.bucket}/${options.prefix.replace(/\/$/, '')}`,
      ARTIFACTS_ENDPOINT: await published(options.endpoint),
      ARTIFACTS_ACCESS_KEY: options.accessKey,
      ARTIFACTS_SECRET_KEY: options.secretKey,
      RATE_LIMIT_PER_MINUTE: '1000000',
      WEBHOOK_ALLOW_PRIVATE: 'true',
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      ...Object.fromEntries(
        ['PROJECTS', 'DOMAINS', 'TOKENS', 'OPEN_TICKETS', 'WEBHOOKS', 'BUILDS_QUEUED'].map((name) => [
          `QUOTA_${name}`,
          '100000',
        ]),
      ),
    }

    const nodes: Node[] = []
    closers.push(() => Promise.all(nodes.map((node) => node.stop())))
    const up = async (wanted: Node[]) => {
      await Promise.all(
        wanted.map((node) =>
          until(async () => (await node.isUp()) || sleep(200, false), startMs).catch(() => {
            throw new Error(`${node.name} does not start:\n${node.log()}`)
          }),
        ),
      )
    }
    for (const role of roles) {
      for (const machine of machines.get(role)!) {
        const { name, address } = machine
        const node = createNode(machine, {
          role,
          command: [process.execPath, program, 'serve', '--roles', role],
          logFile: join(directory, `${name}.log`),
          env: { ...shared, ...(await ownSettings(directory, role, machine)), NODE_NAME: name, NODE_ADDRESS: address },
          isUp: () => isStarted(ports.metrics, address),
        })
        nodes.push(node)
        await node.start()
        // The first makes the database; and two cores start one program after the other sooner than all at once.
        await up([node])
        say(`${name} is up at ${address}`)
      }
    }
    for (const machine of machines.get('knot')!) {
      const node = createNode(machine, await knot(join(directory, machine.name), machine, addresses('nameserver')[0]!))
      nodes.push(node)
      await node.start()
      await up([node])
      say(`${machine.name} is up at ${machine.address}`)
    }
    const token = (await readFile(join(directory, 'api-1/data/test-key'), 'utf8')).trim()
    const of = (role: string) => nodes.filter((node) => node.role === role)
    return { nodes, of, token, serverRepository, directory, databaseUrl: shared.DATABASE_URL!, up, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** What a machine has for itself: its disk, and where it listens. */
async function ownSettings(directory: string, role: Role, { name, address }: Machine): Promise<Record<string, string>> {
  const own = join(directory, name)
  await mkdir(join(own, 'tmp'), { recursive: true })
  await chmod(own, 0o711)
  await chmod(join(own, 'tmp'), 0o777)
  return {
    DATA_DIR: join(own, 'data'),
    TMPDIR: join(own, 'tmp'),
    ...(role === 'runner' && { RUNNER_LISTEN: `${address}:${ports.runner}` }),
    ...(role === 'nameserver' && { NAMESERVER_LISTEN: `${address}:${ports.dns}` }),
  }
}

async function openBucket(store: Layout['store']): Promise<{ options: BucketOptions; close(): unknown }> {
  if (store === 'memory') return startS3()
  const radosgw = await startRadosgw()
  return { options: radosgw.options, close: () => radosgw.stop() }
}

async function openRepositories(root: string): ReturnType<typeof startGitHost> {
  await createRepository(root, repository, { 'index.html': '<h1>main</h1>\n' })
  for (const tag of tags) await commitTo(root, repository, tag, { 'index.html': `<h1>${tag}</h1>\n` })
  await createRepository(root, serverRepository, serverFiles)
  return startGitHost(root)
}

/** As deploy/knot.conf has it. */
async function knot(directory: string, { address }: Machine, primary: string) {
  await mkdir(directory)
  const text = await readFile(join(import.meta.dirname, '../../deploy/knot.conf'), 'utf8')
  const file = join(directory, 'knot.conf')
  await writeFile(
    file,
    text
      .replace('[ 0.0.0.0@53, ::@53 ]', `${address}@${ports.dns}`)
      .replace('    user: knot:knot\n', '')
      .replace('target: syslog', 'target: stderr')
      .replaceAll(/"\/(run|var\/lib)\/knot"/g, `"${directory}"`)
      .replace('192.0.2.1@5300', `${primary}@${ports.dns}`)
      .replaceAll('192.0.2.1', primary)
      .replaceAll('REPLACE+WITH+THE+SECRET+OF+NAMESERVER+TSIG=', key.secret),
  )
  return {
    role: 'knot',
    command: ['knotd', '-c', file],
    logFile: join(directory, 'knot.log'),
    env: { PATH: process.env.PATH ?? '' },
    async isUp() {
      const dnsClient = await createDnsClient(ports.dns, address)
      const answer = await dnsClient.query('sites.test', 'SOA', 1_000)
      dnsClient.close()
      return answer?.rcode === 0
    },
  }
}

export const edgeOf = ({ address }: Node) => ({ address, http: ports.http, https: ports.https })
export const nameserverOf = ({ address }: Node) => ({ address, port: ports.dns })
export const originOf = ({ address }: Node) => `http://${address}:${ports.api}`
