// The platform by role, each in a process of its own that is started again when it ends, and PostgreSQL beside them.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import type { Role } from '../../src/roles/run.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

export type RoleProcess = {
  name: string
  role: Role
  readonly pid: number | undefined
  isUp(): Promise<boolean>
  /** Resolves when it serves. */
  up(): Promise<void>
  stop(): Promise<void>
}

export type Platform = {
  roles: RoleProcess[]
  origin: string
  edgePorts: { http: number; https: number }[]
  dnsPorts: number[]
  /** Environment of every role. */
  environment: Record<string, string>
  readonly postgresPid: number
  /** Resolves when everything is up again. */
  up(): Promise<void>
  /** Ends the roles in order, then PostgreSQL. */
  stop(): Promise<void>
}

const restartMs = 200
// On a busy machine a start has taken a minute.
const startMs = 240_000
const program = join(import.meta.dirname, '../../dist/src/cli.js')

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
    setTimeout(() => socket.destroy(), 1_000).unref()
    socket.once('connect', () => socket.destroy())
  })
}

/** Whether all roles of the process are open. */
export async function isStarted(metricsPort: string | number, address = '127.0.0.1'): Promise<boolean> {
  const signal = AbortSignal.timeout(1_000)
  const report = await fetch(`http://${address}:${metricsPort}/readyz`, { signal })
    .then((answer) => answer.json() as Promise<{ checks: object }>)
    .catch(() => null)
  return report !== null && !('start' in report.checks)
}

function superviseRole(name: string, role: Role, logFile: string, env: Record<string, string>): RoleProcess {
  let child: ChildProcess | null = null
  let gone: Promise<unknown> = Promise.resolve()
  let stopping = false

  function start(): void {
    const log = openSync(logFile, 'a')
    child = spawn(process.execPath, [program, 'serve', '--roles', role], { env, stdio: ['ignore', log, log] })
    closeSync(log)
    gone = once(child, 'exit').then(async () => {
      child = null
      if (stopping) return
      await sleep(restartMs)
      if (!stopping) start()
    })
  }

  const isUp = async () => child !== null && (await isStarted(env.METRICS_PORT!))
  start()
  return {
    name,
    isUp,
    role,
    get pid() {
      return child?.pid
    },
    async up() {
      await until(isUp, startMs).catch(async () => {
        throw new Error(`${name} does not start:\n${(await readFile(logFile, 'utf8')).slice(-2000)}`)
      })
    },
    async stop() {
      stopping = true
      child?.kill('SIGTERM')
      await gone
    },
  }
}

export type PlatformOptions = { directory: string; edges: number; nameservers: number }

export async function startPlatform({ directory, edges, nameservers }: PlatformOptions): Promise<Platform> {
  const ports = (count: number) => Promise.all(Array.from({ length: count }, freePort))
  const [apiPort, postgresPort] = await ports(2)
  const edgePorts = await Promise.all(
    Array.from({ length: edges }, async () => ({ http: await freePort(), https: await freePort() })),
  )
  const dnsPorts = await ports(nameservers)
  const temporary = join(directory, 'tmp')
  await mkdir(temporary, { mode: 0o777 })

  const database = { directory: join(directory, 'postgres'), port: postgresPort, maxConnections: 100 }
  let postgres: EmbeddedPostgres = await startEmbeddedPostgres(database)
  let stopping = false
  let back: Promise<void> = Promise.resolve()
  function keepPostgres(): void {
    void postgres.exited.then(() => {
      back = (async () => {
        if (stopping) return
        postgres = await startEmbeddedPostgres(database)
        keepPostgres()
      })()
    })
  }
  keepPostgres()

  const environment: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    DATABASE_URL: postgres.url('postgres'),
    DATA_DIR: join(directory, 'data'),
    TMPDIR: temporary,
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    PORT: String(apiPort),
    EDGE_HTTP_PORT: String(edgePorts[0]!.http),
    EDGE_HTTPS_PORT: String(edgePorts[0]!.https),
    NAMESERVER_LISTEN: dnsPorts.map((port) => `127.0.0.1:${port}`).join(','),
    NAMESERVER_WORKERS: '0',
    RATE_LIMIT_PER_MINUTE: '1000000',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    LOG_LEVEL: 'warn',
    DRAIN_SECONDS: '0',
    ...Object.fromEntries(
      [
        'PROJECTS',
        'DOMAINS',
        'CLAIMS_PER_MONTH',
        'TOKENS',
        'OPEN_TICKETS',
        'MESSAGES_PER_MONTH',
        'WEBHOOKS',
        'BUILDS_QUEUED',
      ].map((name) => [`QUOTA_${name}`, '100000']),
    ),
  }
  const roles: RoleProcess[] = []
  const start = async (name: string, role: Role, more: Record<string, string> = {}) => {
    const env = { ...environment, METRICS_PORT: String(await freePort()), ...more }
    roles.push(superviseRole(name, role, join(directory, `${name}.log`), env))
  }
  const platform: Platform = {
    roles,
    origin: `http://127.0.0.1:${apiPort}`,
    edgePorts,
    dnsPorts,
    environment,
    get postgresPid() {
      return postgres.pid
    },
    async up() {
      await until(async () => {
        await back
        return isListening(postgresPort!)
      }, startMs)
      await Promise.all(roles.map((role) => role.up()))
    },
    async stop() {
      await Promise.all(roles.map((role) => role.stop()))
      stopping = true
      await back.catch(() => {})
      await postgres.stop()
    },
  }
  try {
    await start('api', 'api')
    // The first start makes the database; the others find it.
    await roles[0]!.up()
    await start('worker', 'worker')
    for (const [at, { http, https }] of edgePorts.entries()) {
      await start(`edge ${at + 1}`, 'edge', { EDGE_HTTP_PORT: String(http), EDGE_HTTPS_PORT: String(https) })
    }
    for (const [at, port] of dnsPorts.entries()) {
      await start(`nameserver ${at + 1}`, 'nameserver', { NAMESERVER_LISTEN: `127.0.0.1:${port}` })
    }
    await platform.up()
    return platform
  } catch (error) {
    await platform.stop()
    throw error
  }
}
