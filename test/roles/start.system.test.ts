import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

vi.setConfig({ testTimeout: 300_000 })

let dataDir: string
let ports: Record<string, string>
const running = new Set<ChildProcess>()
/** The data of an installation after its first start, which takes seconds. */
let installation: string | undefined

/** Begins with what the first start has left; with nothing where that test was not run. */
function install(name = 'data'): void {
  if (installation) execFileSync('cp', ['-pR', installation, join(dataDir, name)])
}

/** Open to the user of PostgreSQL: a directory that is not has its cluster elsewhere, and could not be copied. */
async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-start-'))
  await chmod(directory, 0o711)
  return directory
}

beforeEach(async () => {
  dataDir = await newDirectory()
  ports = {
    PORT: String(await freePort()),
    METRICS_PORT: String(await freePort()),
    EDGE_HTTP_PORT: String(await freePort()),
    EDGE_HTTPS_PORT: String(await freePort()),
  }
})

afterEach(async () => {
  const exits = [...running].map((child) => once(child, 'exit'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(exits)
  await until(async () => (await postgresProcesses()) === 0)
  await rm(dataDir, { recursive: true, force: true })
})

afterAll(async () => {
  if (installation) await rm(dirname(installation), { recursive: true, force: true })
})

function berth(args = ['serve'], environment: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['dist/src/cli.js', ...args], {
    // The nameservers have their own tests and their own ports.
    env: {
      PATH: process.env.PATH,
      NAMESERVER_LISTEN: '127.0.0.1:0,127.0.0.1:0',
      DATA_DIR: join(dataDir, 'data'),
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      ...ports,
      ...environment,
    },
  })
  running.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const exited = once(child, 'exit').then(([code]) => {
    running.delete(child)
    return code as number | null
  })
  return {
    child,
    exited,
    output: () => output,
    async ready() {
      // On a busy machine a first start has taken 20 s.
      await until(() => {
        if (child.exitCode !== null) throw new Error(`ended before it was ready: ${output}`)
        return output.includes('\nTry ')
      }, 90_000)
    },
  }
}

const key = async () => (await readFile(join(dataDir, 'data/test-key'), 'utf8')).trim()
const call = async (path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${ports.PORT}/api${path}`, {
    ...init,
    headers: { authorization: `Bearer ${await key()}`, 'content-type': 'application/json' },
  })

/** What a browser shows at an address under .localhost, which it takes for this machine. */
function visit(address: string): Promise<string> {
  const { host, port } = new URL(address)
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, headers: { host } }, async (response) => {
      resolve(Buffer.concat(await response.toArray()).toString())
    })
    request.on('error', reject)
  })
}

async function postgresProcesses(): Promise<number> {
  const list = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
  return list.split('\n').filter((line) => line.includes(dataDir) && line.includes('postgres')).length
}

describe('starting', () => {
  test('the first start makes a demo account whose key deploys the hello project; a later one keeps it all', async () => {
    const first = berth()
    await first.ready()
    expect(first.output()).toMatch(/^API +http:\/\/localhost:\d+\/api +\(reference: http:\/\/localhost:\d+\/docs\)$/m)
    expect(first.output()).toMatch(/^Dashboard {2}(http:\/\/localhost:\d+) {2}\(sign in once: \1\/setup#[\w-]{43}\)$/m)
    expect(first.output()).toContain(await key())
    expect((await stat(join(dataDir, 'data/test-key'))).mode & 0o777).toBe(0o600)
    const { projects } = (await (await call('/projects')).json()) as { projects: object[] }
    expect(projects).toMatchObject([{ name: 'hello', framework: 'static', repo: 'demo/hello' }])
    const deployed = await call('/deployments', { method: 'POST', body: JSON.stringify({ project: 'hello' }) })
    expect(deployed.status).toBe(201)
    const deployment = (await deployed.json()) as { id: string; commit: string }
    expect(deployment.commit).toMatch(/^[0-9a-f]{7}$/)
    const settled = (await (await call(`/deployments/${deployment.id}?wait=30`)).json()) as {
      state: string
      url: string
    }
    expect(settled.state).toBe('READY')
    expect(await visit(settled.url)).toContain('<h1>Hello from Berth</h1>')
    first.child.kill('SIGTERM')
    expect(await first.exited).toBe(0)
    expect(await postgresProcesses()).toBe(0)
    installation = join(await newDirectory(), 'data')
    execFileSync('cp', ['-pR', join(dataDir, 'data'), installation])

    const second = berth()
    await second.ready()
    expect(second.output()).not.toContain(await key())
    expect((await call(`/deployments/${deployment.id}`)).status).toBe(200)
    second.child.kill('SIGINT')
    expect(await second.exited).toBe(0)
  })

  test('a second start on the same data directory, and one on a taken port, say so in one clear line', async () => {
    install()
    install('other')
    const first = berth(['serve', '--roles', 'api'])
    await first.ready()
    const same = berth()
    expect(await same.exited).toBe(1)
    expect(same.output().trim().split('\n')).toHaveLength(1)
    expect(same.output()).toMatch(/^berth: .*already in use by process \d+/)
    const elsewhere = berth(['serve', '--roles', 'api'], {
      DATA_DIR: join(dataDir, 'other'),
      METRICS_PORT: '0',
    })
    expect(await elsewhere.exited).toBe(1)
    expect(elsewhere.output().trim()).toMatch(new RegExp(`^berth: Port ${ports.PORT} is in use[^\\n]*change PORT.$`))
    expect((await call('/projects')).status).toBe(200)
  })

  test('a bad configuration is refused in words that name the variable', async () => {
    const child = berth(['serve'], { RATE_LIMIT_PER_MINUTE: 'many' })
    expect(await child.exited).toBe(1)
    expect(child.output()).toMatch(/^berth: RATE_LIMIT_PER_MINUTE is not valid/)
  })
})

/** What the user of builds can read or write below the data directory, when no sandbox is in its way. */
async function openToBuilds(): Promise<string[]> {
  const data = join(dataDir, 'data')
  const paths = (await readdir(data, { recursive: true })).map((path) => join(data, path))
  const script = 'while read -r path; do if [ -r "$path" ] || [ -w "$path" ]; then echo "$path"; fi; done'
  const user = ['--reuid', '61000', '--regid', '61000', '--clear-groups']
  const found = execFileSync('setpriv', [...user, 'sh', '-c', script], { input: `${paths.join('\n')}\n` })
  return found.toString().split('\n').filter(Boolean)
}

describe('the data directory', () => {
  test.skipIf(process.getuid?.() !== 0)('is closed to the user of builds, also where it once was open', async () => {
    const data = join(dataDir, 'data')
    const first = berth()
    await first.ready()
    const made = await call('/deployments', { method: 'POST', body: JSON.stringify({ project: 'hello' }) })
    const { id } = (await made.json()) as { id: string }
    expect(await (await call(`/deployments/${id}?wait=30`)).json()).toMatchObject({ state: 'READY' })
    // A build that has ended still deletes its files.
    await until(async () => (await readdir(join(data, 'builds'))).length === 0)
    const control = join(data, 'control')
    await writeFile(control, '', { mode: 0o644 })
    expect(await openToBuilds()).toEqual([control])
    first.child.kill('SIGTERM')
    expect(await first.exited).toBe(0)

    for (const name of ['artifacts', 'builds', 'ca', 'cache', 'repos']) await chmod(join(data, name), 0o755)
    for (const name of ['secrets-key', 'test-key']) await chmod(join(data, name), 0o644)
    expect((await openToBuilds()).length).toBeGreaterThan(5)
    const second = berth()
    await second.ready()
    expect(await openToBuilds()).toEqual([control])
    expect((await stat(data)).mode & 0o777).toBe(0o711)
    second.child.kill('SIGTERM')
    expect(await second.exited).toBe(0)
  })
})

describe('stopping', () => {
  test('lets a request that is under way finish', async () => {
    install()
    const server = berth(['serve', '--roles', 'api'])
    await server.ready()
    const headers = {
      authorization: `Bearer ${await key()}`,
      'content-type': 'application/json',
      expect: '100-continue',
    }
    const sent = request({ port: ports.PORT, host: '127.0.0.1', method: 'POST', path: '/api/tickets', headers })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    // The server says so when it has let the request in.
    await once(sent, 'continue')
    server.child.kill('SIGTERM')
    sent.end(JSON.stringify({ subject: 'A question', message: 'An answer?' }))
    expect((await answered)[0].resume().statusCode).toBe(201)
    expect(await server.exited).toBe(0)
  })

  test('by kill -9 leaves no PostgreSQL, and the next start finds every write that was answered', async () => {
    install()
    const server = berth(['serve', '--roles', 'api'])
    await server.ready()
    const made = await call('/deployments', { method: 'POST', body: JSON.stringify({ project: 'hello' }) })
    const { id } = (await made.json()) as { id: string }
    server.child.kill('SIGKILL')
    await server.exited
    await until(async () => (await postgresProcesses()) === 0)
    const next = berth(['serve', '--roles', 'api'])
    await next.ready()
    expect((await call(`/deployments/${id}`)).status).toBe(200)
    next.child.kill('SIGTERM')
    expect(await next.exited).toBe(0)
  })
})

describe('the command line', () => {
  test('makes accounts and tokens whose secrets work, and refuses what it does not know', async () => {
    const account = berth(['accounts', 'create', 'acme'])
    expect(await account.exited).toBe(0)
    const [, id] = /^Account +(acc_\w+)$/m.exec(account.output())!
    const token = berth(['tokens', 'create', '--account', id!, '--scopes', 'dns:write', '--name', 'ci'])
    expect(await token.exited).toBe(0)
    expect(token.output()).toMatch(/^Secret +brt_[0-9A-Za-z]{36}$/m)
    const bad = berth(['tokens', 'create', '--account', id!, '--scopes', 'dns:all', '--name', 'ci'])
    expect(await bad.exited).toBe(1)
    expect(bad.output()).toMatch(/There is no scope dns:all/)
  })

  test('makes the owner of the demo account an operator, beside a server that starts or runs', async () => {
    install()
    const operator = ['tokens', 'create', '--account', 'demo', '--scopes', '*,operator', '--name', 'operator']
    const server = berth(['serve', '--roles', 'api'])
    // Its directory is claimed, and its database does not answer yet.
    await until(() => existsSync(join(dataDir, 'data/postgres/owner')))
    const early = berth(operator)
    await server.ready()
    const late = berth(operator)
    for (const command of [early, late]) {
      expect([await command.exited, command.output()]).toEqual([
        0,
        expect.stringMatching(/^Token +tok_\w+\nSecret +brt_/),
      ])
      const headers = { authorization: `Bearer ${/brt_\w+/.exec(command.output())![0]}` }
      for (const path of ['operator/accounts', 'projects']) {
        expect((await fetch(`http://127.0.0.1:${ports.PORT}/api/${path}`, { headers })).status).toBe(200)
      }
    }
    expect((await call('/operator/accounts')).status).toBe(403)
    server.child.kill('SIGTERM')
    expect(await server.exited).toBe(0)
  })
})

test('a Node that is too old is refused in one line, before anything else is loaded', () => {
  const older = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } })'
  const started = spawnSync(process.execPath, ['--import', `data:text/javascript,${older}`, 'dist/src/cli.js', 'serve'])
  expect(started.status).toBe(1)
  expect(started.stderr.toString()).toMatch(/^berth: This is Node 20\.1\.0, and Berth needs Node 22 or newer\. .+\n$/)
})
