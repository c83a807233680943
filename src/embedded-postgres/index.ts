// Runs a real PostgreSQL from npm for machines that have none: the database of `npm start` and of the tests.
import { randomBytes } from 'node:crypto'
import { chown, mkdir, open, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { installedBinaries } from './binaries.ts'
import { findHome, type Home } from './home.ts'
import { claim, endOrphan } from './processes.ts'
import { type Supervised, supervise } from './supervisor.ts'

export type EmbeddedPostgres = {
  url(database?: string): string
  /** The server's own process. */
  pid: number
  /** One sentence if the server exits before stop() was called; otherwise it stays pending. */
  exited: Promise<string>
  /** Closes connections and shuts down; resolves when the last process is gone. */
  stop(): Promise<void>
}

export type EmbeddedPostgresOptions = {
  directory: string
  /** False gives up crash safety for speed: for tests. */
  durable?: boolean
  maxConnections?: number
  /** Default: any free port. Set it if others must find the server again after a restart. */
  port?: number
  /** The directory with bin/, lib/ and share/; default: the installed package. */
  binaries?: string
}

const SUPERUSER = 'berth'
// Crash recovery after a power cut reads at most max_wal_size, 1 GB.
const READY_TIMEOUT_MS = 60_000
const RETRY_TIMEOUT_MS = 15_000
const LOG_LIMIT_BYTES = 1_000_000
// Another program took the port first, or a server that was just killed still holds the cluster.
const temporaryFailure = /could not create any TCP\/IP sockets|lock file "postmaster.pid"|pre-existing shared memory/

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  // Socket paths end at 107 bytes, which a deep checkout exceeds.
  unix_socket_directories: '',
  shared_buffers: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_min_messages: 'warning',
  log_checkpoints: 'off',
}
const NOT_DURABLE = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_wal_size: '128MB',
  min_wal_size: '32MB',
}

export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const binaries = options.binaries ?? installedBinaries()
  if (process.platform === 'win32')
    throw new Error('The embedded PostgreSQL does not run on Windows; set DATABASE_URL.')
  await mkdir(options.directory, { recursive: true, mode: 0o700 })
  const directory = await realpath(options.directory)
  const claims = [await claim(directory)]
  const release = () => Promise.all(claims.map((end) => end()))
  try {
    const home = await findHome(directory, binaries)
    // A copied data directory points at the same cluster as the original.
    if (home.path !== directory) claims.push(await claim(home.path))
    const log = join(directory, 'postgres.log')
    await rotate(log)
    const cluster = await stat(join(home.path, 'cluster')).catch(() => undefined)
    if (cluster === undefined) await initialise(home, log, options.durable ?? true)
    const { server, port } = await launchWithRetries(home, log, options)
    const password = await readFile(join(home.path, 'cluster', 'password'), 'utf8')
    return running({ server, port, password, log, release })
  } catch (error) {
    await release()
    throw error
  }
}

type Started = { server: Supervised; port: number; password: string; log: string; release(): Promise<unknown> }

function running({ server, port, password, log, release }: Started): EmbeddedPostgres {
  let stopped: Promise<void> | undefined
  const exited = new Promise<string>((resolve) => {
    const report = async () => {
      if (stopped) return
      await release()
      resolve(`The embedded PostgreSQL ended unexpectedly; see ${log}.`)
    }
    server.gone.then(report, report)
  })
  return {
    url: (database = 'postgres') =>
      `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    pid: server.pid,
    exited,
    stop: () => {
      stopped ??= server.end().finally(release)
      return stopped
    },
  }
}

/** Works in a draft that is renamed when complete, so an interrupted first start leaves no partial cluster. */
async function initialise(home: Home, log: string, durable: boolean): Promise<void> {
  for (const name of await readdir(home.path)) {
    // A killed initdb may still write into its draft; what can't be removed now is removed on the next first start.
    if (name.startsWith('cluster.')) await rm(join(home.path, name), { recursive: true }).catch(() => {})
  }
  const draft = join(home.path, `cluster.${randomBytes(8).toString('hex')}`)
  const [data, password] = [join(draft, 'data'), join(draft, 'password')]
  await mkdir(draft, { mode: 0o700 })
  await writeFile(password, randomBytes(24).toString('base64url'), { mode: 0o600 })
  if (home.account) {
    await chown(password, home.account.uid, home.account.gid)
    await chown(draft, home.account.uid, home.account.gid)
  }
  const { mark, handle } = await openLog(log, home)
  const initdb = await supervise({
    command: [
      join(home.binaries, 'bin', 'initdb'),
      ...['-D', data, '-U', SUPERUSER, '--auth=scram-sha-256', `--pwfile=${password}`],
      ...['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'],
      ...(durable ? [] : ['--no-sync', '--wal-segsize=4']),
    ],
    data,
    account: home.account,
    log: handle.fd,
  })
  await handle.close()
  if ((await initdb.gone) !== 0) throw await failure('PostgreSQL could not create its database', log, mark)
  await rename(draft, join(home.path, 'cluster'))
}

async function launchWithRetries(home: Home, log: string, options: EmbeddedPostgresOptions) {
  const data = join(home.path, 'cluster', 'data')
  const deadlineMs = Date.now() + RETRY_TIMEOUT_MS
  for (;;) {
    await endOrphan(data)
    const port = options.port ?? (await freePort())
    const settings = {
      ...SETTINGS,
      ...(options.durable === false ? NOT_DURABLE : {}),
      port,
      max_connections: options.maxConnections ?? 60,
    }
    try {
      return { port, server: await launch(home, data, log, settings) }
    } catch (error) {
      if (Date.now() > deadlineMs || !temporaryFailure.test((error as Error).message)) throw error
    }
    await delay(100)
  }
}

async function launch(home: Home, data: string, log: string, settings: object): Promise<Supervised> {
  const { mark, handle } = await openLog(log, home)
  const server = await supervise({
    command: [
      join(home.binaries, 'bin', 'postgres'),
      ...['-D', data],
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    data,
    account: home.account,
    log: handle.fd,
  })
  await handle.close()
  let gone = false
  server.gone.finally(() => (gone = true)).catch(() => {})
  const deadlineMs = Date.now() + READY_TIMEOUT_MS
  while (!(await isReady(data, server.pid))) {
    if (gone) throw await failure('PostgreSQL did not start', log, mark)
    if (Date.now() > deadlineMs) {
      await server.end()
      throw await failure(`PostgreSQL was not ready after ${READY_TIMEOUT_MS / 1000} s`, log, mark)
    }
    await delay(10)
  }
  return server
}

// Like pg_ctl: the first line of the lock file is the pid, the eighth the state. It needs no connection.
async function isReady(data: string, pid: number): Promise<boolean> {
  const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function openLog(log: string, home: Home) {
  const handle = await open(log, 'a', 0o600)
  // So that the owner of the cluster can append after root did.
  if (home.account) await handle.chown(home.account.uid, home.account.gid)
  return { handle, mark: (await handle.stat()).size }
}

async function failure(sentence: string, log: string, mark: number): Promise<Error> {
  const said = (await readFile(log)).subarray(mark).toString('utf8').trimEnd().split('\n').slice(-12).join('\n')
  return new Error(`${sentence}; the end of ${log} says:\n${said}`)
}

async function rotate(log: string): Promise<void> {
  const { size } = await stat(log).catch(() => ({ size: 0 }))
  if (size > LOG_LIMIT_BYTES) await rename(log, `${log}.1`)
}
