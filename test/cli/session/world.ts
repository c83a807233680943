// A whole platform for the session of docs/cli.md: the server, Pebble, and a parent zone that delegates to our nameservers.
// It listens on port 53 of loopback addresses of its own, so it needs root, nsd, unbound and pebble.
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
const resolver = '127.99.0.4'
const ours = ['127.99.0.2', '127.99.0.3']
const root = join(import.meta.dirname, '../../..')

/** The zone above, by NSD, and a resolver that knows it, by Unbound. */
async function startParent(directory: string): Promise<ChildProcess[]> {
  const file = (name: string) => join(directory, name)
  const zone = [
    '$TTL 60',
    '@ SOA ns.com. hostmaster.com. 1 60 60 3600 60',
    '@ NS ns.com.',
    `ns A ${parent}`,
    ...ours.flatMap((address, index) => [
      `example NS ns${index + 1}.berth-dns.com.`,
      `ns${index + 1}.berth-dns A ${address}`,
    ]),
  ]
  await writeFile(file('com.zone'), `${zone.join('\n')}\n`)
  const nsd = [
    'server:',
    ...[
      `ip-address: ${parent}`,
      'username: ""',
      'chroot: ""',
      'database: ""',
      `zonesdir: "${directory}"`,
      'verbosity: 1',
    ],
    ...[`pidfile: "${file('nsd.pid')}"`, `xfrdfile: "${file('xfrd')}"`, `zonelistfile: "${file('zones')}"`],
    ...['remote-control:', 'control-enable: no', 'zone:', 'name: "com"', `zonefile: "${file('com.zone')}"`],
  ]
  await writeFile(file('nsd.conf'), `${nsd.join('\n')}\n`)
  const unbound = [
    'server:',
    ...[`interface: ${resolver}`, 'port: 53', 'do-ip6: no', 'do-not-query-localhost: no', 'module-config: "iterator"'],
    ...['access-control: 127.0.0.0/8 allow', 'chroot: ""', 'username: ""', 'use-syslog: no', 'do-daemonize: no'],
    ...[`pidfile: "${file('unbound.pid')}"`, 'remote-control:', 'control-enable: no'],
    ...['stub-zone:', 'name: "com"', `stub-addr: ${parent}`],
  ]
  await writeFile(file('unbound.conf'), `${unbound.join('\n')}\n`)
  return [
    spawn('nsd', ['-d', '-c', file('nsd.conf')], { stdio: 'ignore' }),
    spawn('unbound', ['-d', '-c', file('unbound.conf')], { stdio: 'ignore' }),
  ]
}

export async function startWorld(): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-session-'))
  // PostgreSQL runs as another user under root and must get through.
  await chmod(directory, 0o711)
  const names = join(directory, 'names')
  await mkdir(names)
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
    for (const child of await startParent(names)) closers.push(ending(child))
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
      NAMESERVERS: 'ns1.berth-dns.com,ns2.berth-dns.com',
      NAMESERVER_LISTEN: ours.map((address) => `${address}:53`).join(),
      DNS_RESOLVERS: resolver,
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
  const invited = await call('POST', '/api/members/invitations', { email: 'ada@example.com', role: 'owner' })
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
