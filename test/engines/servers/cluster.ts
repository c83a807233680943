// Runners with a link of their own to the database, and an edge that has none of them in its process.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import type { ServerProjects } from '../../../src/engines/edge/hosts/server-projects.ts'
import { openBalancer, startRunner } from '../../../src/engines/servers/index.ts'
import type { ServerLimits } from '../../../src/engines/servers/instance/limits.ts'
import { closeDatabase, openDatabase } from '../../../src/platform/database/database.ts'
import { listen } from '../../../src/platform/database/notifications.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'
import { changeProject, findProject } from '../../../src/services/projects/projects.ts'
import { type Link, openLink } from '../../helpers/link.ts'
import { sharedSandbox } from '../../helpers/sandbox.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from '../edge/world.ts'
import { processesWith } from './world.ts'

/** Answers with the mark of its process, which is in its environment; its number is that of its namespace. */
const start = 'MARK=mark-$(cat /proc/sys/kernel/random/uuid) exec node server.js'
const program = `
  const server = require('node:http').createServer((request, response) => {
    if (request.url === '/exit') process.exit(1)
    if (request.url === '/hang') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    request.resume().on('end', () => response.end(process.env.MARK))
  })
  server.on('upgrade', (request, socket) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n' + process.env.MARK)
  })
  server.listen(process.env.PORT)`

/** The files of the project. */
export const serverFiles = {
  'server.js': program,
  'package.json': JSON.stringify({ name: 'marked', scripts: { start } }),
}

export const log = pino({ level: 'silent' })
export const vault = createVault(Buffer.alloc(32, 7))

export type TestRunner = { id: string; link: Link; drain(): void; close(): Promise<void> }

export type Cluster = World & {
  addRunner(id: string): Promise<TestRunner>
  /** A server project in production; returns its deployment. */
  serve(name: string, instances?: number): Promise<{ id: string; host: string }>
  /** Another deployment of it, which takes production over. */
  serveAnother(name: string): Promise<{ id: string; host: string }>
  scale(name: string, instances: number): Promise<void>
  instances(deploymentId: string): Promise<{ slot: number; node: string | null; state: string; term: bigint }[]>
  /** Resolves when as many are healthy. */
  healthy(deploymentId: string, count: number): ReturnType<Cluster['instances']>
  /** The process that answers. */
  visit(host: string): Promise<string>
}

export const leaseMs = 1_500

export async function startCluster(limits: Partial<ServerLimits> = {}): Promise<Cluster> {
  let balancer: ServerProjects
  const servers: ServerProjects = {
    ready: (...wanted) => balancer.ready(...wanted),
    proxy: (...visit) => balancer.proxy(...visit),
    upgrade: (...visit) => balancer.upgrade(...visit),
    retire: (id) => balancer.retire(id),
    halt: (id) => balancer.halt(id),
    close: () => balancer.close(),
  }
  const world = await startWorld({ servers })
  const { db, notifications, config, urls, artifacts, actor } = world
  balancer = await openBalancer({ db, notifications, vault, log }, 'edge', null)
  const sandbox = await sharedSandbox('none')
  const runners = new Set<TestRunner>()

  const cluster: Cluster = {
    ...world,
    async addRunner(id) {
      const link = await openLink(world.databaseUrl)
      const own = openDatabase(link.url, 4, { class: 'workers' })
      const heard = await listen(link.url, log)
      const draining = new AbortController()
      const shared = { config, urls, artifacts, sandbox, vault, log, leaseMs, draining: draining.signal }
      const packageRegistry = Promise.resolve('https://registry.npmjs.org/')
      const runner = await startRunner(
        {
          ...shared,
          db: own,
          notifications: heard,
          packageRegistry,
          limits: { closeMs: 200, ...limits },
          handoverMs: 50,
        },
        { id, address: null },
      )
      const made: TestRunner = {
        id,
        link,
        drain: () => draining.abort(),
        async close() {
          if (!runners.delete(made)) return
          await runner.close()
          await heard.close()
          await closeDatabase(own)
          link.close()
        },
      }
      runners.add(made)
      return made
    },
    async serve(name, instances = 1) {
      await world.newProject(name)
      await db.project.updateMany({ where: { name }, data: { framework: 'node', instances } })
      return cluster.serveAnother(name)
    },
    async serveAnother(name) {
      const { id, host } = await world.deploy(name, {}, { kind: 'node', production: true, ready: false })
      const tree = artifacts.serverDirectory(id)
      for (const [file, text] of Object.entries(serverFiles)) await writeFile(join(tree, file), text)
      await world.ready(id)
      return { id, host }
    },
    async scale(name, instances) {
      await findProject(db, actor, name)
      await changeProject(db, urls, actor, { key: name, input: { settings: { instances } }, precondition() {} })
    },
    instances: (deploymentId) => db.instance.findMany({ where: { deploymentId }, orderBy: { slot: 'asc' } }),
    healthy: (deploymentId, count) =>
      until(async () => {
        const found = await cluster.instances(deploymentId)
        return found.length === count && found.every(({ state }) => state === 'healthy') && found
      }),
    async visit(host) {
      const { status, text } = await world.get(host, '/')
      if (status !== 200) throw new Error(`${status} ${text}`)
      return text
    },
    async stop() {
      for (const { close } of [...runners]) await close()
      await world.stop()
    },
  }
  return cluster
}

export const isAlive = (mark: string) => processesWith(mark).length > 0
