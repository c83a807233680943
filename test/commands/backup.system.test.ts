// `berth backup` beside a server that is written to, and `berth restore` elsewhere: with the program that production runs.
import { type ChildProcess, spawn } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { get as getPlain } from 'node:http'
import { get as getSecurely } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { backup } from '../../src/commands/backup.ts'
import { restore } from '../../src/commands/restore.ts'
import { loadConfig } from '../../src/config.ts'
import { openStorage } from '../../src/roles/opening/storage.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'
import { advisoryLocks, cleanUp, emptyDatabase, query } from '../services/backups/installation.ts'

vi.setConfig({ testTimeout: 240_000 })

let root: string
let environment: Record<string, string>
const running = new Set<ChildProcess>()

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-backup-'))
  const [first, second] = [await freePort(), await freePort()]
  environment = {
    PATH: process.env.PATH!,
    LOG_LEVEL: 'error',
    NAMESERVER_LISTEN: `127.0.0.1:${first},127.0.0.1:${second}`,
    RATE_LIMIT_PER_MINUTE: '100000',
    QUOTA_OPEN_TICKETS: '100000',
  }
  for (const name of ['PORT', 'METRICS_PORT', 'EDGE_HTTP_PORT', 'EDGE_HTTPS_PORT'])
    environment[name] = String(await freePort())
})

afterAll(async () => {
  const exits = [...running].map((child) => once(child, 'exit'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(exits)
  await cleanUp()
  await rm(root, { recursive: true, force: true, maxRetries: 10 })
})

function berth(dataDir: string, args: string[], more: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['dist/src/cli.js', ...args], {
    env: { ...environment, DATA_DIR: join(root, dataDir), ...more },
  })
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const exited = once(child, 'close').then(([code]) => {
    running.delete(child)
    return code as number | null
  })
  return { child, exited, output: () => output }
}

/** Runs a command to its end. */
async function say(
  dataDir: string,
  args: string[],
  more: Record<string, string> = {},
): Promise<[number | null, string]> {
  const { exited, output } = berth(dataDir, args, more)
  return [await exited, output()]
}

async function serve(dataDir: string) {
  const server = berth(dataDir, ['serve'])
  await until(() => {
    if (server.child.exitCode !== null) throw new Error(`ended before it was ready: ${server.output()}`)
    return server.output().includes('\nTry ')
  }, 90_000)
  return server
}

let key = ''
// biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
async function call(method: string, path: string, body?: object): Promise<any> {
  const response = await fetch(`http://127.0.0.1:${environment.PORT}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

async function listAll(path: string, name: string): Promise<{ id: string; subject: string }[]> {
  const all: { id: string; subject: string }[] = []
  for (let cursor = ''; ; ) {
    const page = await call('GET', `${path}limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)
    all.push(...page[name])
    if (page.nextCursor === null) return all
    cursor = page.nextCursor
  }
}

/** The ids of the next events of the stream behind this one. */
async function follow(lastEventId: string, count: number): Promise<string[]> {
  const closing = new AbortController()
  const response = await fetch(`http://127.0.0.1:${environment.PORT}/api/events`, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${key}`, 'last-event-id': lastEventId },
    signal: closing.signal,
  })
  let text = ''
  const ids = () => [...text.matchAll(/^id: ?(\S+)\n/gm)].map(([, id]) => id!)
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (ids().length >= count) break
  }
  closing.abort()
  return ids()
}

function visit(host: string, ca?: Buffer): Promise<string> {
  const port = ca ? environment.EDGE_HTTPS_PORT : environment.EDGE_HTTP_PORT
  const options = { host: '127.0.0.1', port, headers: { host }, servername: host, ca }
  return new Promise((resolve, reject) => {
    const request = (ca ? getSecurely : getPlain)(options, async (response) => {
      resolve(Buffer.concat(await response.toArray()).toString())
    })
    request.on('error', reject)
  })
}

function resolveAddress(name: string): Promise<string[]> {
  const resolver = new Resolver()
  resolver.setServers([environment.NAMESERVER_LISTEN!.split(',')[0]!])
  return resolver.resolve4(name).catch(() => [])
}

test('a server is backed up while it is written to, and comes back elsewhere with every answered write', async () => {
  const archive = join(root, 'backup.tar.gz')
  const first = await serve('first')
  key = (await readFile(join(root, 'first/test-key'), 'utf8')).trim()
  const { id } = await call('POST', '/deployments', { project: 'hello', production: true })
  expect(await call('GET', `/deployments/${id}?wait=60`)).toMatchObject({ state: 'READY' })
  await call('POST', '/domains', { name: 'shop.test', project: 'hello' })
  await call('POST', '/dns/shop.test/records', { type: 'A', name: 'shop', value: '192.0.2.7', ttl: 300 })
  await until(async () => (await call('GET', '/domains/shop.test')).ssl === 'ACTIVE', 90_000)

  let writing = true
  const answered: string[] = []
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    while (writing) {
      const ticket = { subject: `${writer}`, message: 'x', priority: 'low' }
      answered.push((await call('POST', '/tickets', ticket)).id)
    }
  })
  await until(() => answered.length > 20)
  const before = [...answered]
  expect(await say('first', ['backup', archive])).toEqual([0, expect.stringContaining('the files of 1 deployments')])
  await until(() => answered.length > before.length + 20)
  writing = false
  await Promise.all(writers)
  const all = (await listAll('/events?', 'events')).map((event) => event.id)
  const followed = await follow(all.at(-1)!, all.length - 1)
  first.child.kill('SIGKILL')
  await first.exited

  // Not with another key; and a restore that is killed leaves an empty database and a place where nothing starts.
  const configOf = (more: Record<string, string> = {}) =>
    loadConfig({ ...environment, DATA_DIR: join(root, 'second'), ...more })
  const other = configOf({ SECRETS_KEY: Buffer.alloc(32).toString('base64') })
  await expect(restore(other, archive)).rejects.toThrow(/^SECRETS_KEY is not the key of this archive/)
  await expect(restore(configOf(), join(root, 'nothing'))).rejects.toThrow(/^The archive cannot be read/)
  expect(existsSync(join(root, 'second'))).toBe(false)
  const DATABASE_URL = await emptyDatabase()
  const killed = berth('second', ['restore', archive], { DATABASE_URL })
  await until(() => existsSync(join(root, 'second/restore-incomplete')))
  killed.child.kill('SIGKILL')
  await killed.exited
  const tables = `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace`
  await until(async () => (await advisoryLocks(DATABASE_URL)).length === 0)
  expect(await query(DATABASE_URL, tables)).toEqual([])
  await expect(openStorage(configOf())).rejects.toThrow(/ is incomplete because a restore did not finish/)
  await expect(backup(configOf(), archive)).rejects.toThrow(/ is incomplete because a restore did not finish/)
  await expect(restore(configOf(), archive)).rejects.toThrow(/ is not empty; a restore needs an empty DATA_DIR/)
  await rm(join(root, 'second'), { recursive: true })

  expect(await say('second', ['restore', archive])).toEqual([0, expect.stringMatching(/^Restored the database as of /)])
  expect(existsSync(join(root, 'second/restore-incomplete'))).toBe(false)
  const second = await serve('second')
  expect(await visit('hello.localhost')).toContain('Hello from Berth')
  const certificate = await readFile(join(root, 'second/ca/root.pem'))
  expect(certificate).toEqual(await readFile(join(root, 'first/ca/root.pem')))
  await until(async () => (await visit('shop.test', certificate).catch(() => '')).includes('Hello from Berth'))
  await until(async () => (await resolveAddress('shop.shop.test')).includes('192.0.2.7'))

  // What is there is one moment: all that was answered before it, and for each ticket its event and its place in the count.
  const tickets = (await listAll('/tickets?', 'tickets')).map((ticket) => ticket.id)
  expect(before.filter((one) => !tickets.includes(one))).toEqual([])
  expect(tickets.filter((one) => !answered.includes(one))).toEqual([])
  const events = (await listAll('/events?type=ticket.created&', 'events')).map(({ subject }) => subject)
  expect(events.sort()).toEqual([...tickets].sort())
  expect((await call('GET', '/account')).usage.openTickets).toBe(tickets.length)

  // A reader of the first server goes on behind the event that it had, without a gap or a repeat.
  const kept = new Set((await listAll('/events?', 'events')).map((event) => event.id))
  const wanted = followed.filter((event) => kept.has(event))
  expect(wanted.length).toBeGreaterThan(40)
  const read = await follow(wanted[20]!, wanted.length - 21)
  expect(read).toEqual(wanted.slice(21))
  const written = await call('POST', '/tickets', { subject: 'after', message: 'x', priority: 'low' })
  const [last] = await listAll(`/events?subject=${written.id}&`, 'events')
  expect(await follow(read.at(-1)!, 1)).toEqual([last!.id])

  // And it goes on: the repository builds, and commands work beside it.
  const next = await call('POST', '/deployments', { project: 'hello' })
  expect(await call('GET', `/deployments/${next.id}?wait=60`)).toMatchObject({ state: 'READY' })
  expect(await say('second', ['jobs', 'list', '--json'])).toEqual([0, '[]\n'])
  second.child.kill('SIGTERM')
  expect(await second.exited).toBe(0)
})
