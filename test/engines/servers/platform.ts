// An API, a worker, a runner and an edge with small limits, on one repository whose folders are the versions of a server.
import { Agent, get } from 'node:http'
import { buildHandlers, openDisk } from '../../../src/engines/builder/index.ts'
import { openSwitches } from '../../../src/engines/edge/hosts/switches.ts'
import { createEdge, type Edge } from '../../../src/engines/edge/serve/server.ts'
import { createProofs, openBalancer, startRunner } from '../../../src/engines/servers/index.ts'
import type { ServerLimits } from '../../../src/engines/servers/instance/limits.ts'
import { startWorker } from '../../../src/jobs/worker.ts'
import { listen } from '../../../src/platform/database/notifications.ts'
import { createSandbox, type SandboxOptions } from '../../../src/sandbox/sandbox.ts'
import { sharedPackageRegistry, sharedPrograms, sharedSandbox } from '../../helpers/sandbox.ts'
import { type Platform, startPlatform } from '../builder/host.ts'

const answering = (version: string, afterMs = 0) => `
  const server = require('node:http').createServer((request, response) => {
    response.write('${version} ')
    setTimeout(() => response.end('${version}'), 3)
  })
  setTimeout(() => server.listen(process.env.PORT), ${afterMs})`

const programs = {
  v1: answering('v1'),
  v2: answering('v2'),
  slow: answering('slow', 2_000),
  deaf: `console.log('I listen to nobody'); setInterval(() => {}, 1000)`,
  ending: `console.error('no database to be found'); process.exit(7)`,
  brief: `require('node:http').createServer((request, response) => {
    console.log('this was all')
    response.end('x', () => process.exit(1))
  }).listen(process.env.PORT)`,
  headOnly: `require('node:http').createServer((request, response) => {
    response.writeHead(200, { 'content-length': 10 }).flushHeaders()
  }).listen(process.env.PORT, () => console.log('only a head'))`,
  talking: `const server = require('node:http').createServer(({ url }, response) => {
    if (url !== '/events') return response.end('talking')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    setInterval(() => response.write('data: tick\\n\\n'), 10)
  })
  server.on('upgrade', (request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n')
    socket.on('error', () => {})
    setInterval(() => socket.write('tick'), 10)
  })
  server.listen(process.env.PORT)`,
  sick: `require('node:http').createServer(({ url }, response) => {
    response.writeHead(url === '/' ? 500 : 200).end('x')
  }).listen(process.env.PORT)`,
}

export type Version = keyof typeof programs

export type ServedPlatform = Platform & {
  readonly edge: Edge
  /** Where the edge serves HTTP. */
  readonly port: number
  /** A server project. */
  newProject(name: string): Promise<{ productionUrl: string }>
  /** Asks for a deployment of a version; returns its id and its address. */
  begin(project: string, version: Version, production?: boolean): Promise<{ id: string; url: string; label: string }>
  /** The same, and the deployment when it has left BUILDING. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came.
  deployed(project: string, version: Version, production?: boolean): Promise<any>
  /** Status and body, as a line. */
  visit(address: string): Promise<string>
  restartEdge(): Promise<void>
}

/** `apart`: the edge has no runner in its process, and its own notifications, as on another machine. */
export async function startServedPlatform(
  limits: Partial<ServerLimits>,
  { apart = false, options }: { apart?: boolean; options?: Partial<SandboxOptions> } = {},
): Promise<ServedPlatform> {
  // Builds that wait for a server to start hold up no others.
  const platform = await startPlatform({ EDGE_HTTP_PORT: '0', BUILD_CONCURRENCY: '5' }, false)
  const { api, artifacts } = platform
  const { log } = api.deps
  const sandbox = options
    ? await createSandbox('auto', { searchPath: process.env.PATH!, ...options })
    : await sharedSandbox()
  const packageRegistry = sharedPackageRegistry()
  const config = { ...api.config, databaseUrl: api.databaseUrl }
  const draining = new AbortController().signal
  const shared = {
    ...api.deps,
    config,
    artifacts,
    sandbox,
    packageRegistry,
    programs: sharedPrograms(),
    limits,
    draining,
  }
  const agent = new Agent({ keepAlive: true })
  const heard = apart ? await listen(api.databaseUrl, log) : api.deps.notifications
  let started = 0
  const openRunner = () => startRunner(shared, { id: `runner-${++started}`, address: null })
  // In a process of its own the runner stays when the edge is restarted.
  const apartRunner = apart ? await openRunner() : null
  const openEdge = async () => {
    const runner = apart ? null : await openRunner()
    const servers = await openBalancer({ ...shared, notifications: heard }, 'edge', runner)
    const switches = await openSwitches({ ...api.deps, edge: { id: 'edge', name: 'edge' } })
    const { shown: onShown } = switches
    const edge = createEdge({ ...api.deps, vault: undefined, notifications: heard, artifacts, servers, onShown })
    const { port } = await edge.listen()
    const close = async () => {
      await edge.close()
      await switches.close()
      await runner?.close()
    }
    return { edge, port, close }
  }
  let current = await openEdge()
  const servers = createProofs(api.deps)
  const disk = openDisk({ directory: api.config.dataDir, reserveMb: api.config.diskReserveMb, log: api.deps.log })
  const handlers = buildHandlers({
    ...api.deps,
    artifacts,
    sandbox,
    packageRegistry,
    programs: sharedPrograms(),
    servers,
    disk,
  })
  const worker = startWorker(api.db, api.deps.notifications, log, handlers)

  const served: ServedPlatform = {
    ...platform,
    get edge() {
      return current.edge
    },
    get port() {
      return current.port
    },
    async newProject(name) {
      const start = JSON.stringify({ name, private: true, scripts: { start: 'exec node server.js' } })
      const files = Object.entries(programs).flatMap(([version, program]) => [
        [`${version}/server.js`, program],
        [`${version}/package.json`, start],
      ])
      await platform.project(name, Object.fromEntries(files), { framework: 'node' })
      return (await api.call('GET', `/projects/${name}`)).body
    },
    async begin(project, version, production = true) {
      await api.call('PATCH', `/projects/${project}`, { body: { settings: { rootDirectory: version } } })
      const { body } = await api.call('POST', '/deployments', { body: { project, production } })
      return { id: body.id, url: body.url, label: new URL(body.url).hostname.split('.')[0]! }
    },
    async deployed(project, version, production) {
      return platform.settled((await served.begin(project, version, production)).id)
    },
    visit: (address) =>
      new Promise((resolve, reject) => {
        const headers = { host: new URL(address).host }
        const sent = get({ host: '127.0.0.1', port: current.port, agent, headers }, async (response) => {
          resolve(`${response.statusCode} ${Buffer.concat(await response.toArray())}`)
        })
        sent.on('error', reject)
      }),
    async restartEdge() {
      await current.close()
      current = await openEdge()
    },
    async stop() {
      agent.destroy()
      await worker.stop()
      await current.close()
      await apartRunner?.close()
      if (apart) await heard.close()
      await sandbox.close()
      await platform.stop()
    },
  }
  return served
}
