// Servers in a real sandbox behind a real port, with a table of hosts that the test changes as the edge does.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, createServer, type IncomingHttpHeaders, type RequestOptions, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { defaultLimits, type ServerLimits } from '../../../src/engines/servers/instance/limits.ts'
import { createServers, type ServersOptions } from '../../../src/engines/servers/run/servers.ts'
import type { Artifacts } from '../../../src/platform/artifacts/artifacts.ts'
import { createArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import type { NewLogLine } from '../../../src/services/deployments/logs/deployment-logs.ts'
import { sharedSandbox } from '../../helpers/sandbox.ts'
import { directly } from './direct.ts'

export type Driver = 'none' | 'bubblewrap'
export type Answer = { status: number; headers: IncomingHttpHeaders; raw: string[]; text: string }

const works = (await sharedSandbox()).driver === 'bubblewrap'
const skipped = !works && process.env.BERTH_REQUIRE_PEERS !== '1'

/** Without a sandbox everywhere, in bubblewrap where it works, unless its absence is an error. */
export function withEachDriver(name: string, define: (driver: Driver) => void): void {
  describe(`${name} (none)`, () => define('none'))
  describe.skipIf(skipped)(`${name} (bubblewrap)`, () => define('bubblewrap'))
}

/** The same for tests that run side by side, since they mostly wait: each starts a world, which ends with it. */
export function withEachDriverAtOnce(name: string, define: (test: ReturnType<typeof testIn>) => void): void {
  describe(`${name} (none)`, { concurrent: true }, () => define(testIn('none')))
  describe.skipIf(skipped)(`${name} (bubblewrap)`, { concurrent: true }, () => define(testIn('bubblewrap')))
}

const testIn = (driver: Driver) =>
  test.extend<{ start(limits?: Partial<ServerLimits>, options?: Partial<ServersOptions>): Promise<World> }>({
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from it what a fixture needs.
    start: async ({}, use) => {
      const worlds: World[] = []
      await use(async (limits, options) => {
        const world = await startWorld(driver, limits, options)
        worlds.push(world)
        return world
      })
      await Promise.all(worlds.map((world) => world.stop()))
    },
  })

export type World = {
  servers: ReturnType<typeof directly>
  artifacts: Artifacts
  port: number
  agent: Agent
  /** Lines of the deployment's log, as text. */
  lines(deploymentId: string): string[]
  logged: Map<string, NewLogLine[]>
  /** Processes of the deployment's server. */
  processes(deploymentId: string): string[]
  /** A deployment of the test project, or of a program of its own. */
  deploy(deploymentId: string, program?: string): Promise<void>
  /** Which deployment answers all requests from now on. */
  show(deploymentId: string): void
  get(path: string, options?: RequestOptions & { body?: string | Buffer }): Promise<Answer>
  stop(): Promise<void>
}

export async function startWorld(
  driver: Driver,
  limits: Partial<ServerLimits> = {},
  options: Partial<ServersOptions> = {},
): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-servers-'))
  const artifacts = createArtifacts(directory)
  const sandbox = await sharedSandbox(driver)
  // Other tests run beside this one, with deployments of the same names.
  const mark = randomBytes(8).toString('hex')
  const keyOf = (id: string) => `key-of-${id}-${mark}`
  const logged = new Map<string, NewLogLine[]>()
  const limited = { ...defaultLimits, ...limits }
  const made = createServers({
    sandbox,
    artifacts,
    start: { command: 'exec node server.mjs' },
    settingsOf: async (id) => ({
      environment: { VERSION: id, API_KEY: keyOf(id), BERTH_URL: `https://${id}.berth.test` },
      network: 'none',
    }),
    writeLog: async (id, lines) => void logged.set(id, [...(logged.get(id) ?? []), ...lines]),
    limits: limited,
    ...options,
  })
  const servers = directly(made, limited)
  let target = { deploymentId: 'none', projectId: 'project' }
  const front = createServer((request, response) => servers.proxy(request, response, target))
  front.on('upgrade', (request, socket, head) => servers.upgrade(request, socket, head, target))
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  const { port } = front.address() as AddressInfo
  const agent = new Agent({ keepAlive: true })
  return {
    servers,
    artifacts,
    port,
    agent,
    logged,
    processes: (id) => processesWith(keyOf(id)),
    lines: (id) => (logged.get(id) ?? []).map(({ text }) => text),
    async deploy(id, program) {
      const tree = artifacts.serverDirectory(id)
      await mkdir(tree, { recursive: true })
      if (program === undefined) await copyFile(join(import.meta.dirname, 'project.mjs'), join(tree, 'server.mjs'))
      else await writeFile(join(tree, 'server.mjs'), program)
      await writeFile(
        join(tree, 'package.json'),
        JSON.stringify({ name: 'project', scripts: { start: 'node server.mjs' } }),
      )
    },
    show(deploymentId) {
      target = { deploymentId, projectId: 'project' }
    },
    get: (path, { body, ...rest } = {}) =>
      new Promise((resolve, reject) => {
        const sent = request({ port, host: '127.0.0.1', agent, path, ...rest }, (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            const { statusCode, headers, rawHeaders } = response
            resolve({ status: statusCode!, headers, raw: rawHeaders, text: Buffer.concat(chunks).toString('latin1') })
          })
        })
        sent.on('error', reject)
        sent.end(body)
      }),
    async stop() {
      agent.destroy()
      await servers.close()
      await new Promise((resolve) => {
        front.close(resolve)
        front.closeAllConnections()
      })
      await sandbox.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Processes of this machine with the text in their environment or command line. */
export function processesWith(text: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      if (!/^\d+$/.test(name) || Number(name) === process.pid) return false
      return ['environ', 'cmdline'].some((file) => readFileSync(`/proc/${name}/${file}`, 'latin1').includes(text))
    } catch {
      return false
    }
  })
}
