// An edge on a real port over a real database, with deployments published by hand.
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { type Config, loadConfig } from '../../../src/config.ts'
import { openSwitches } from '../../../src/engines/edge/hosts/switches.ts'
import { createEdge, type Edge, type EdgeOptions } from '../../../src/engines/edge/serve/server.ts'
import type { Manifest } from '../../../src/platform/artifacts/artifacts.ts'
import { createArtifacts, type LocalArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { closeDatabase, type Database, openDatabase } from '../../../src/platform/database/database.ts'
import { listen, type Notifications } from '../../../src/platform/database/notifications.ts'
import { createUrls, type Urls } from '../../../src/platform/http/urls.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { createDeployment } from '../../../src/services/deployments/deployments.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { createDomain } from '../../../src/services/domains/domains.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import type { Actor } from '../../../src/services/identity/actor.ts'
import { createProject, findProject } from '../../../src/services/projects/projects.ts'
import { createDatabase } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

export type Answer = { status: number; headers: IncomingHttpHeaders; body: Buffer; text: string }
export type Files = Record<string, string | Buffer>
export type Settings = Partial<Pick<Manifest, 'kind' | 'spaFallback' | 'cleanUrls'>>

export type World = {
  edge: Edge
  port: number
  /** Of HTTPS, where the edge was given a vault. */
  httpsPort: number
  db: Database
  config: Config
  urls: Urls
  actor: Actor
  artifacts: LocalArtifacts
  notifications: Notifications
  databaseUrl: string
  newProject(name: string): Promise<string>
  /** A deployment that is built and published; READY unless told otherwise. */
  deploy(
    project: string,
    files: Files,
    options?: Settings & { production?: boolean; ready?: boolean; ref?: string },
  ): Promise<{ id: string; host: string; branchHost: string }>
  ready(id: string): Promise<void>
  /** A project of its own in production, at `<name>.localhost`. */
  site(name: string, files: Files, settings?: Settings): Promise<string>
  attach(project: string, domain: string): Promise<string>
  get(host: string, path: string, headers?: Record<string, string>, method?: string): Promise<Answer>
  /** Sends bytes as they are and returns everything that comes until the connection closes. */
  raw(bytes: string | Buffer): Promise<string>
  stop(): Promise<void>
}

export async function startWorld(options: Partial<EdgeOptions> = {}): Promise<World> {
  const database = await createDatabase()
  const directory = await mkdtemp(join(tmpdir(), 'berth-edge-'))
  const config = loadConfig({
    DATABASE_URL: database.url,
    DATA_DIR: directory,
    EDGE_HTTP_PORT: '0',
    EDGE_HTTPS_PORT: '0',
  })
  const urls = createUrls(config)
  const log = pino({ level: 'silent' })
  const db = openDatabase(database.url, 10)
  const notifications = await listen(database.url, log)
  const artifacts = (options.artifacts as LocalArtifacts) ?? createArtifacts(join(directory, 'artifacts'))
  const switches = await openSwitches({ db, urls, edge: { id: 'edge', name: 'edge' }, log })
  const { shown: onShown } = switches
  const edge = createEdge({ config, db, notifications, artifacts, log, onShown, ...options })
  const { account } = await createAccount(db, `edge-${randomBytes(4).toString('hex')}`)
  const actor: Actor = { accountId: account.id, tokenId: 'system', scopes: ['*'], projectIds: null }
  const { port, httpsPort } = await edge.listen()
  const agent = new Agent({ keepAlive: true })

  async function publish(id: string, files: Files, settings: Settings): Promise<void> {
    const manifest: Manifest = {
      version: 1,
      kind: 'static',
      files: {},
      spaFallback: false,
      cleanUrls: true,
      ...settings,
    }
    for (const [path, content] of Object.entries(files)) {
      const bytes = Buffer.from(content)
      manifest.files[path] = await artifacts.store(path, bytes.length, [bytes])
    }
    if (manifest.kind === 'node') await mkdir(artifacts.serverDirectory(id), { recursive: true })
    await artifacts.publish(id, manifest)
  }

  const world: World = {
    edge,
    port,
    httpsPort: httpsPort ?? 0,
    db,
    config,
    urls,
    actor,
    artifacts,
    notifications,
    databaseUrl: database.url,
    async newProject(name) {
      const { region } = config
      await createProject(db, urls, actor, { region, input: { name, repo: `test/${name}` } })
      return name
    },
    async deploy(name, files, { production = false, ready = true, ref = 'main', ...settings } = {}) {
      const project = await findProject(db, actor, name)
      const plan = {
        project,
        ref,
        commit: 'c'.repeat(40),
        production,
        region: config.region,
        source: 'api' as const,
      }
      const made = await createDeployment(db, urls, actor, plan)
      await publish(made.id, files, settings)
      if (ready) await world.ready(made.id)
      return { id: made.id, host: new URL(made.url).hostname, branchHost: new URL(made.branchUrl!).hostname }
    },
    async ready(id) {
      await finishDeployment(db, urls, id, { to: 'READY', by: 'system' })
    },
    async site(name, files, settings = {}) {
      await world.newProject(name)
      await world.deploy(name, files, { production: true, ...settings })
      const host = `${name}.localhost`
      await until(() => edge.snapshot!.find(host)?.target)
      return host
    },
    async attach(project, name) {
      await createDomain(db, config, actor, { project, name })
      const { id } = await db.domain.findFirstOrThrow({ where: { name } })
      await markVerified(db, config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
      return id
    },
    get: (host, path, headers = {}, method = 'GET') =>
      new Promise((resolve, reject) => {
        const sent = request({ port, agent, path, method, headers: { host, ...headers } }, (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            const body = Buffer.concat(chunks)
            resolve({ status: response.statusCode!, headers: response.headers, body, text: body.toString() })
          })
        })
        sent.on('error', reject)
        sent.end()
      }),
    raw: (bytes) =>
      new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
        let text = ''
        socket.setEncoding('latin1')
        socket.on('data', (chunk) => {
          text += chunk
        })
        socket.on('error', reject)
        socket.on('close', () => resolve(text))
        socket.setTimeout(30_000, () => socket.destroy(new Error('the edge kept the connection open')))
      }),
    async stop() {
      agent.destroy()
      await edge.close()
      await switches.close()
      await notifications.close()
      await closeDatabase(db)
      await database.drop()
      await rm(directory, { recursive: true, force: true })
    },
  }
  return world
}
