// A whole platform for the session of docs/cli.md: the server, Pebble, and a parent zone that delegates to our nameservers.
// It listens on port 53 of loopback addresses of its own, so it needs root, named (Debian: bind9) and pebble.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPebble } from '../../engines/certificates/pebble.ts'
import { freePort } from '../../helpers/ports.ts'
import { until } from '../../helpers/until.ts'

export type World = {
  directory: string
  url: string
  /** Of an owner of the account. */
  token: string
  call(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Response>
  stop(): Promise<void>
}

const parent = '127.99.0.1'
const ours = ['127.99.0.2', '127.99.0.3']
const root = join(import.meta.dirname, '../../..')

async function startParent(directory: string): Promise<ChildProcess> {
  const zone = [
    '$TTL 60',
    '@ SOA ns.example. hostmaster.example. 1 60 60 3600 60',
    '@ NS ns.example.',
    `ns A ${parent}`,
    'shop NS ns1.berth.example.',
    'shop NS ns2.berth.example.',
    ...ours.map((address, index) => `ns${index + 1}.berth A ${address}`),
  ]
  const options = [`directory "${directory}"`, `listen-on { ${parent}; }`, 'listen-on-v6 { none; }', 'recursion yes']
  options.push('dnssec-validation no', `pid-file "${directory}/named.pid"`, 'allow-query { any; }', 'prefetch 0')
  const config = `options { ${options.join('; ')}; };\nzone "example" { type primary; file "${directory}/example.zone"; };\ncontrols { };\n`
  await writeFile(join(directory, 'example.zone'), `${zone.join('\n')}\n`)
  await writeFile(join(directory, 'named.conf'), config)
  return spawn('named', ['-g', '-n', '1', '-c', join(directory, 'named.conf')], { stdio: 'ignore' })
}

export async function startWorld(): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-session-'))
  // PostgreSQL runs as another user under root and must get through.
  await chmod(directory, 0o711)
  const named = join(directory, 'named')
  await mkdir(named)
  const [port, httpPort, httpsPort] = await Promise.all([freePort(), freePort(), freePort()])
  const closers: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
  const stop = async () => {
    for (const close of closers.reverse()) await close()
  }
  const ending = (child: ChildProcess) => async () => {
    if (child.exitCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  try {
    closers.push(ending(await startParent(named)))
    const pebble = await startPebble({ dnsServer: `${ours[0]}:53`, httpPort })
    closers.push(() => pebble.stop())
    const log = join(directory, 'server.log')
    const env = {
      PATH: process.env.PATH,
      DATA_DIR: join(directory, 'data'),
      PORT: String(port),
      EDGE_HTTP_PORT: String(httpPort),
      EDGE_HTTPS_PORT: String(httpsPort),
      EDGE_ADDRESSES: '127.0.0.1',
      METRICS_PORT: '0',
      DRAIN_SECONDS: '0',
      NAMESERVERS: 'ns1.berth.example,ns2.berth.example',
      NAMESERVER_LISTEN: ours.map((address) => `${address}:53`).join(),
      DNS_RESOLVERS: parent,
      ACME_DIRECTORY_URL: pebble.directoryUrl,
      ACME_CA_FILE: pebble.caFile,
    }
    const out = openSync(log, 'a')
    const server = spawn(process.execPath, [join(root, 'src/cli.ts'), 'serve'], { env, stdio: ['ignore', out, out] })
    closers.push(ending(server))
    const url = `http://localhost:${port}`
    await until(async () => {
      if (server.exitCode !== null) throw new Error(await readFile(log, 'utf8'))
      const health = await fetch(`${url}/healthz`).catch(() => null)
      return health?.ok || new Promise((resolve) => setTimeout(resolve, 500, false))
    }, 120_000)
    const token = (await readFile(join(directory, 'data/test-key'), 'utf8')).trim()
    const call = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
      fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
        ...(body && { body: JSON.stringify(body) }),
      })
    return { directory, url, token, call, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Approves a code as the console does: somebody who was invited opens the link, and agrees. */
export async function createApproval({ call }: World): Promise<(userCode: string) => Promise<void>> {
  const invited = await call('POST', '/api/invitations', { email: 'ada@example.com', role: 'owner' })
  const { secret } = (await invited.json()) as { secret: string }
  const page = { 'sec-fetch-site': 'same-origin', authorization: '' }
  const opened = await call('POST', '/auth/setup', { code: secret }, page)
  const cookie = /^[^;]+/.exec(opened.headers.getSetCookie().find((one) => one.startsWith('__Host-berth=')) ?? '')?.[0]
  if (!cookie) throw new Error(`The link was not taken: ${opened.status} ${await opened.text()}`)
  return async (userCode) => {
    const answer = await call('POST', '/auth/device/answer', { userCode, approve: true }, { ...page, cookie })
    if (answer.status !== 204) throw new Error(`The code was not taken: ${await answer.text()}`)
  }
}
