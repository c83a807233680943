// Proves that the embedded PostgreSQL keeps its data, never outlives Berth, and copes with root and killed predecessors.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, chown, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { installedBinaries } from '../../src/embedded-postgres/binaries.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { findRunningPostgres } from '../../src/embedded-postgres/running.ts'
import { until } from '../helpers/until.ts'

const isRoot = process.getuid?.() === 0
const NOBODY = { uid: 65534, gid: 65534 }
const MODULE = new URL('../../src/embedded-postgres/index.ts', import.meta.url).href

let template: string
let base: string
let directory: string
const servers: EmbeddedPostgres[] = []
const children: ChildProcess[] = []

beforeAll(async () => {
  template = await mkdtemp(join(tmpdir(), 'berth-'))
  await chmod(template, 0o711)
  const server = await startEmbeddedPostgres({ directory: join(template, 'postgres'), durable: false })
  await server.stop()
})

afterAll(() => rm(template, { recursive: true, force: true }))

/** Begins with an initialised cluster, which a copy gives in a fraction of the time of a first start. */
const seed = () => execFileSync('cp', ['-pR', join(template, 'postgres'), directory])

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'berth-')))
  // As root, PostgreSQL runs as another user, to whom mkdtemp closes the directory; one test wants just that.
  await chmod(base, 0o711)
  directory = join(base, 'postgres')
})

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
  for (const child of children.splice(0)) child.kill('SIGKILL')
  const shelter = await readFile(join(directory, 'elsewhere'), 'utf8').catch(() => undefined)
  if (shelter !== undefined) await rm(shelter, { recursive: true, force: true })
  await rm(base, { recursive: true, force: true, maxRetries: 10 })
})

async function start(options: { binaries?: string; maxConnections?: number } = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ directory, durable: false, ...options })
  servers.push(server)
  return server
}

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

const remember = (url: string) => query(url, 'CREATE TABLE kept AS SELECT 42 AS answer')
const recall = (url: string) => query(url, 'SELECT answer FROM kept')
const KEPT = [{ answer: 42 }]

/** A Berth of its own, to be killed; `after` is code that runs once its server is up. */
async function startParent(options: { after?: string; account?: { uid: number; gid: number } } = {}) {
  const script = `
    import { spawn } from 'node:child_process'
    import { startEmbeddedPostgres } from '${MODULE}'
    const server = await startEmbeddedPostgres({ directory: ${JSON.stringify(directory)}, durable: false })
    console.log(JSON.stringify({ pid: server.pid, url: server.url() }))
    ${options.after ?? ''}
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: '/',
    detached: true,
    ...options.account,
  })
  children.push(child)
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const line = async () => JSON.parse((await lines.next()).value as string)
  return { child, line, exit: once(child, 'exit') }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    if (process.platform !== 'linux') return true
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

function supervisorOf(pid: number): number {
  if (process.platform !== 'linux') return Number(execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)]))
  return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[1])
}

describe('one server after another', () => {
  test('a restart finds the data of the first start', async () => {
    expect(await findRunningPostgres(directory)).toBeNull()
    const first = await start()
    await remember(first.url())
    // A command beside it finds it, and nothing once it has stopped.
    expect(await findRunningPostgres(directory)).toBe(first.url())
    await first.stop()
    expect(isAlive(first.pid)).toBe(false)
    expect(await findRunningPostgres(directory)).toBeNull()
    await first.stop()
    const second = await start()
    expect(await recall(second.url())).toEqual(KEPT)
  })

  test('the database is UTF-8, compares by code point, and lets nobody in without the password', async () => {
    const server = await start({ maxConnections: 17 })
    const settings = `SELECT current_setting('server_encoding') AS encoding, current_setting('max_connections') AS connections,
      current_setting('TimeZone') AS zone, datlocale AS locale, 'É' = upper('é') AS upper, 'Z' < 'a' AS order
      FROM pg_database WHERE datname = current_database()`
    expect(await query(server.url(), settings)).toEqual([
      { encoding: 'UTF8', connections: '17', zone: 'UTC', locale: 'C.UTF-8', upper: true, order: true },
    ])
    const intruder = new URL(server.url())
    intruder.password = 'guess'
    await expect(query(intruder.href, 'SELECT 1')).rejects.toThrow('password authentication failed')
    const password = await stat(join(directory, 'cluster', 'password'))
    expect(password.mode & 0o777).toBe(0o600)
  })

  test('a directory in use is refused in one sentence, and its server is left alone', async () => {
    seed()
    const server = await start()
    await expect(start()).rejects.toThrow(`The database in ${directory} is already in use by process ${process.pid}.`)
    expect(await query(server.url(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('a failed start says why, with the end of the log, and leaves the directory free', async () => {
    seed()
    await expect(start({ maxConnections: -1 })).rejects.toThrow(
      /^PostgreSQL did not start; .*\n(.*\n)*.*max_connections/,
    )
    await start()
  })

  test('a first start that was killed midway is begun afresh', async () => {
    const { child, exit } = await startParent()
    const drafts = async () => (await readdir(directory).catch(() => [])).filter((name) => name.startsWith('cluster.'))
    const global = async () => existsSync(join(directory, (await drafts())[0] ?? '-', 'data', 'global'))
    await until(global)
    child.kill('SIGKILL')
    await exit
    expect(existsSync(join(directory, 'cluster'))).toBe(false)
    const server = await start()
    expect(await query(server.url(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('a stranger with the pid of the dead server neither hinders the start nor comes to harm', async () => {
    seed()
    const first = await start()
    await remember(first.url())
    const data = join(directory, 'cluster', 'data')
    const lock = await readFile(join(data, 'postmaster.pid'), 'utf8')
    await first.stop()
    const { uid, gid } = await stat(data)
    // Of the server's own user, because PostgreSQL ignores the processes of others.
    const stranger = spawn('sleep', ['60'], { stdio: 'ignore', cwd: '/', ...(isRoot ? { uid, gid } : {}) })
    children.push(stranger)
    await writeFile(join(data, 'postmaster.pid'), lock.replace(String(first.pid), String(stranger.pid)), {
      mode: 0o600,
    })
    await chown(join(data, 'postmaster.pid'), uid, gid)
    const second = await start()
    expect(await recall(second.url())).toEqual(KEPT)
    expect(isAlive(stranger.pid!)).toBe(true)
  })
})

describe('a Berth that is killed', () => {
  beforeEach(seed)

  test('leaves no PostgreSQL behind, even while another of its children lives on', async () => {
    const sibling = `console.log(JSON.stringify(spawn('sleep', ['60'], { stdio: 'ignore', detached: true }).pid))`
    const { child, line, exit } = await startParent({ after: sibling })
    const { pid, url } = await line()
    const siblingPid = await line()
    try {
      await remember(url)
      const supervisor = supervisorOf(pid)
      child.kill('SIGKILL')
      await exit
      await until(() => !isAlive(pid) && !isAlive(supervisor))
      expect(isAlive(siblingPid)).toBe(true)
    } finally {
      process.kill(siblingPid)
    }
    const server = await start()
    expect(await recall(server.url())).toEqual(KEPT)
  })

  test('may be followed at once by the next, with open connections and unwritten pages', async () => {
    const { child, line, exit } = await startParent()
    const { pid, url } = await line()
    await remember(url)
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    await client.query('CREATE TABLE bulk AS SELECT g, repeat(md5(g::text), 8) FROM generate_series(1, 50000) g')
    child.kill('SIGKILL')
    await exit
    const server = await start()
    expect(isAlive(pid)).toBe(false)
    expect(await recall(server.url())).toEqual(KEPT)
    await client.end().catch(() => {})
  })

  test('together with its supervisor leaves a server that the next start ends', async () => {
    const { child, line, exit } = await startParent()
    const { pid, url } = await line()
    await remember(url)
    // Stopped first, or it would notice its supervisor's death and end the server itself.
    child.kill('SIGSTOP')
    process.kill(supervisorOf(pid), 'SIGKILL')
    child.kill('SIGKILL')
    await exit
    expect(isAlive(pid)).toBe(true)
    const server = await start()
    expect(isAlive(pid)).toBe(false)
    expect(await recall(server.url())).toEqual(KEPT)
  })
})

describe('a running server', () => {
  beforeEach(seed)

  test('does not feel a Ctrl-C in the terminal of Berth', async () => {
    const after = `process.once('SIGINT', () => console.log('"interrupted"'))
      process.once('SIGUSR2', async () => {
        await server.stop()
        console.log('"stopped"')
        clearInterval(staying)
      })
      const staying = setInterval(() => {}, 1000)
      console.log('"listening"')`
    const { child, line, exit } = await startParent({ after })
    const { pid, url } = await line()
    expect(await line()).toBe('listening')
    process.kill(-child.pid!, 'SIGINT')
    expect(await line()).toBe('interrupted')
    expect(await query(url, 'SELECT pg_sleep(0.2)')).toHaveLength(1)
    expect(isAlive(pid)).toBe(true)
    child.kill('SIGUSR2')
    expect(await line()).toBe('stopped')
    expect(isAlive(pid)).toBe(false)
    expect((await exit)[0]).toBe(0)
  })

  test('that is killed is reported', async () => {
    const server = await start()
    process.kill(server.pid, 'SIGKILL')
    expect(await server.exited).toBe(
      `The embedded PostgreSQL ended unexpectedly; see ${join(directory, 'postgres.log')}.`,
    )
    await start()
  })

  test('whose supervisor is killed ends and is reported', async () => {
    const server = await start()
    process.kill(supervisorOf(server.pid), 'SIGKILL')
    expect(await server.exited).toContain('ended unexpectedly')
    expect(isAlive(server.pid)).toBe(false)
  })

  test('ends its sessions on stop', async () => {
    const server = await start()
    const busy = query(server.url(), 'SELECT pg_sleep(30)').catch((error: Error) => error.message)
    const isBusy = `SELECT FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(30)'`
    await until(async () => (await query(server.url(), isBusy)).length > 0)
    await server.stop()
    expect(await busy).toMatch(/terminat/)
  })
})

describe('users and permissions', () => {
  test.runIf(isRoot)(
    'root keeps the cluster and the programs elsewhere when its own place is closed to others',
    async () => {
      const binaries = join(base, 'native')
      execFileSync('cp', ['-pR', installedBinaries(), binaries])
      await chmod(base, 0o700)
      const first = await start({ binaries })
      await remember(first.url())
      await first.stop()
      const shelter = await readFile(join(directory, 'elsewhere'), 'utf8')
      expect((await stat(shelter)).mode & 0o007).toBe(0)
      expect((await stat(base)).mode & 0o777).toBe(0o700)
      const second = await start({ binaries })
      expect(await recall(second.url())).toEqual(KEPT)
      await second.stop()

      await rm(directory, { recursive: true })
      const third = await start({ binaries })
      await expect(recall(third.url())).rejects.toThrow('does not exist')
      expect(existsSync(shelter)).toBe(false)
    },
  )

  test.runIf(isRoot)('root takes the cluster along when its place is closed after the first start', async () => {
    const first = await start()
    await remember(first.url())
    await first.stop()
    await chmod(base, 0o700)
    const second = await start()
    expect(await recall(second.url())).toEqual(KEPT)
    expect(existsSync(join(directory, 'cluster'))).toBe(false)
  })

  test.runIf(isRoot)(
    'an ordinary user runs everything in the directory, and root may continue it',
    async ({ skip }) => {
      try {
        execFileSync(process.execPath, ['-e', `fs.accessSync(${JSON.stringify(new URL(MODULE).pathname)})`], {
          ...NOBODY,
          cwd: '/',
          stdio: 'ignore',
        })
      } catch {
        skip('the checkout is closed to ordinary users')
      }
      await chown(base, NOBODY.uid, NOBODY.gid)
      const { child, line, exit } = await startParent({ account: NOBODY })
      const { pid, url } = await line()
      await remember(url)
      expect((await stat(join(directory, 'cluster', 'data'))).uid).toBe(NOBODY.uid)
      child.kill('SIGKILL')
      await exit
      await until(() => !isAlive(pid))
      const server = await start()
      expect(await recall(server.url())).toEqual(KEPT)
      expect(existsSync(join(directory, 'elsewhere'))).toBe(false)
    },
  )
})
