// The API as in production, on its own database; checks every response against its declared schema.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { InjectOptions } from 'fastify'
import { pino } from 'pino'
import { type App, buildApp } from '../../src/api/app.ts'
import type { Deps } from '../../src/api/http/deps.ts'
import { type Config, loadConfig } from '../../src/config.ts'
import { createDiscovery } from '../../src/engines/discovery/index.ts'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { listen, notificationsReadiness } from '../../src/platform/database/notifications.ts'
import { createRepositories } from '../../src/platform/git/repositories.ts'
import { createReach } from '../../src/platform/http/checked-lookup.ts'
import { createUrls } from '../../src/platform/http/urls.ts'
import { createHealth } from '../../src/platform/observe/health.ts'
import { openReadiness } from '../../src/platform/observe/readiness.ts'
import { createPasswordHasher } from '../../src/platform/secrets/password-hash.ts'
import { createVault } from '../../src/platform/secrets/secrets.ts'
import { openArtifacts } from '../../src/platform/storage/open-artifacts.ts'
import { quotaNames, quotaVariable } from '../../src/schemas/quotas.ts'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { createZoneWork } from '../../src/services/dns/thread/zone-work.ts'
import { writeQuotaDefaults } from '../../src/services/quotas/index.ts'
import { createTokenDirectory } from '../../src/services/tokens/directory.ts'
import { createDatabase, rememberRows, type TestDatabase } from './database.ts'
import { createRepository } from './repository.ts'
import { createResponseChecker } from './responses.ts'

export type Answer = {
  status: number
  headers: Record<string, string | undefined>
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  body: any
  text: string
}

export type CallOptions = {
  body?: unknown
  /** Null sends no Authorization header; the default is the first account's full token. */
  token?: string | null
  headers?: Record<string, string>
}

export type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>

export type TestApi = {
  app: App
  db: Database
  deps: Deps
  config: Config
  /** The account of `token`. */
  accountId: string
  token: string
  databaseUrl: string
  /** Calls `/api` + path. */
  call: Call
  /** See `listenOnce`. */
  listen(): Promise<string>
  /** Creates another account with a full token. */
  newAccount(name?: string): Promise<{ accountId: string; token: string }>
  /** Creates a project with a real bare repository that has a branch `main`. */
  newProject(name: string, options?: { token?: string; body?: object }): Promise<Answer['body']>
  stop(): Promise<void>
}

let accounts = 0

const origins = new WeakMap<App, Promise<string>>()

/** Listens on a free port, unless it listens already; returns the origin. */
export function listenOnce(app: App): Promise<string> {
  const origin = origins.get(app) ?? app.listen({ host: '127.0.0.1', port: 0 })
  origins.set(app, origin)
  return origin
}

// Tests create as much as they like, unless they test quotas.
const plenty = Object.fromEntries(quotaNames.map((name) => [quotaVariable(name), '1000000000']))

type Options = Partial<Pick<Deps, 'consoleDirectory' | 'commandLineFile' | 'discover'>>

type Shared = { api: TestApi; deleteRows(): Promise<void>; files: number; inUse: boolean; closed: boolean }
let shared: Shared | undefined

/**
 * The API of this process with the default settings. Every file starts with an empty database, a new account and its
 * own IP address, because limits per address outlast the rows. Starting an API costs a second of CPU, so a file
 * calls `startApi` only if it needs other settings or changes the schema.
 */
export async function sharedApi(): Promise<TestApi> {
  if (shared?.inUse) throw new Error('this file has the shared API already; a second one needs startApi')
  if (!shared || shared.closed) {
    const database = await createDatabase()
    const deleteRows = await rememberRows(database.url)
    const api = await open(database)
    const { app } = api
    const state: Shared = { api, deleteRows, files: 0, inUse: false, closed: false }
    const inject = app.inject.bind(app) as (options: InjectOptions) => ReturnType<App['inject']>
    app.inject = ((options: InjectOptions | string) => {
      const remoteAddress = `127.2.${state.files >> 8}.${state.files & 255}`
      return inject({ remoteAddress, ...(typeof options === 'string' ? { url: options } : options) })
    }) as App['inject']
    const close = app.close.bind(app)
    app.close = (async () => {
      state.closed = true
      await close()
    }) as App['close']
    shared = state
  }
  const mine = shared
  mine.inUse = true
  mine.files++
  const { api } = mine
  await mine.deleteRows()
  await writeQuotaDefaults(api.db, api.config.quotas)
  await rm(join(api.config.dataDir, 'repos'), { recursive: true, force: true })
  const first = await api.newAccount()
  return {
    ...api,
    ...first,
    call: (method, path, options = {}) =>
      api.call(method, path, { ...options, token: options.token === undefined ? first.token : options.token }),
    newProject: (name, options = {}) => api.newProject(name, { ...options, token: options.token ?? first.token }),
    async stop() {
      mine.inUse = false
    },
  }
}

/** An API with its own database. */
export async function startApi(environment: Record<string, string> = {}, options: Options = {}): Promise<TestApi> {
  return open(await createDatabase(), environment, options)
}

async function open(
  database: TestDatabase,
  environment: Record<string, string> = {},
  options: Options = {},
): Promise<TestApi> {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-data-'))
  const config = loadConfig({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    RATE_LIMIT_PER_MINUTE: '1000000',
    MAX_IN_FLIGHT_PER_ACCOUNT: '1000',
    // Tests hold locks to observe what waits for them.
    DATABASE_LOCK_TIMEOUT_MS: '10000',
    LOG_LEVEL: 'silent',
    ...plenty,
    ...environment,
  })
  const log = pino({ level: config.logLevel })
  const db = openDatabase(config.databaseUrl!, config.databasePool, {
    // On a busy machine, connecting takes longer.
    limits: { lockMs: config.databaseLockTimeoutMs, statementMs: 60_000, waitMs: 60_000 },
  })
  await writeQuotaDefaults(db, config.quotas)
  // Zone serials start at 1 instead of the time, so that tests can count changes.
  await db.$executeRaw`ALTER TABLE domain ALTER COLUMN serial SET DEFAULT 1`
  const notifications = await listen(config.databaseUrl!, log)
  const vault = createVault(config.secretsKey ?? Buffer.alloc(32, 7))
  const reach = createReach(config)
  const repositories = createRepositories(config.gitUrlTemplate, join(dataDir, 'repos'), config.searchPath, reach)
  const tokenDirectory = createTokenDirectory(db, notifications)
  const urls = createUrls(config)
  const zoneWork = createZoneWork({ db, databaseUrl: config.databaseUrl!, log })
  const readiness = openReadiness(config.databaseUrl!)
  const health = createHealth(['api'])
  health.add('database', readiness.check)
  health.add('changes', readiness.changes, [])
  health.add('notifications', notificationsReadiness(notifications))
  // Only tests of the console use a built one.
  const consoleDirectory = join(dataDir, 'no-console')
  // Tests hash hundreds of passwords, so hashing is fast.
  const passwordHasher = createPasswordHasher({ use: { kind: 'argon2id', parameters: { m: 64, t: 1, p: 1 } } })
  const discover = createDiscovery({ config })
  const artifacts = openArtifacts(config, log)
  const tools = { vault, repositories, artifacts, tokenDirectory, zoneWork, discover }
  const shared = { config, urls, db, notifications, health, ...tools, log }
  // Busy machines must not shed load; tests of shedding set their own limit.
  const maxLoopDelayMs = Number.POSITIVE_INFINITY
  const deps: Deps = { ...shared, passwordHasher, consoleDirectory, maxLoopDelayMs, ...options }
  const app = await buildApp(deps)
  await app.ready()
  const check = createResponseChecker(app)

  async function newAccount(name = `account-${++accounts}`): Promise<{ accountId: string; token: string }> {
    const made = await createAccount(db, name)
    return { accountId: made.account.id, token: made.token }
  }
  const first = await newAccount()

  const call: Call = async (method, path, options = {}) => {
    const token = options.token === undefined ? first.token : options.token
    const sent: InjectOptions = {
      method: method as 'GET',
      url: `/api${path}`,
      headers: { ...(token && { authorization: `Bearer ${token}` }), ...options.headers },
    }
    if (typeof options.body === 'string' || Buffer.isBuffer(options.body)) sent.payload = options.body
    else if (options.body !== undefined) {
      sent.payload = JSON.stringify(options.body)
      sent.headers = { 'content-type': 'application/json', ...sent.headers }
    }
    const response = await app.inject(sent)
    const text = response.body
    const type = String(response.headers['content-type'] ?? '')
    const answer: Answer = {
      status: response.statusCode,
      headers: response.headers as Answer['headers'],
      body: /json/.test(type) && text !== '' ? JSON.parse(text) : undefined,
      text,
    }
    check(method, path, answer)
    return answer
  }

  return {
    app,
    db,
    deps,
    config,
    accountId: first.accountId,
    token: first.token,
    databaseUrl: database.url,
    call,
    listen: () => listenOnce(app),
    newAccount,
    async newProject(name, options = {}) {
      await createRepository(join(dataDir, 'repos'), `test/${name}`)
      const body = { name, framework: 'static', repo: `test/${name}`, ...options.body }
      const made = await call('POST', '/projects', { body, ...(options.token && { token: options.token }) })
      if (made.status !== 201) throw new Error(`the project was not made: ${made.text}`)
      return made.body
    },
    async stop() {
      await app.close()
      await tokenDirectory.close()
      await zoneWork.close()
      artifacts.close()
      await notifications.close()
      await readiness.close()
      await closeDatabase(db)
      await database.drop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
