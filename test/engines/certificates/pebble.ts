// Pebble, the certificate authority that Let's Encrypt tests with, on loopback ports of its own.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { webcrypto } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as x509 from '@peculiar/x509'
import { freePort } from '../../helpers/ports.ts'
import { until } from '../../helpers/until.ts'

export type PebbleOptions = {
  /** `address:port` of the nameserver that it asks. */
  dnsServer: string
  /** Where it expects http-01 to be answered. */
  httpPort: number
  validitySeconds?: number
  /** Percentage of good nonces that it refuses. */
  nonceReject?: number
  /** Key id and key in base64url; given, an account needs them. */
  eab?: Record<string, string>
  /** Names, and those below them, that it refuses to issue for. */
  blocked?: string[]
}

export type Pebble = {
  directoryUrl: string
  /** Root of the certificate that Pebble itself listens with, for ACME_CA_FILE. */
  caFile: string
  /** Everything it logged so far. */
  log(): string
  /** How many orders were made. */
  orders(): number
  /** PEM of the root that its certificates lead to. */
  root(): Promise<string>
  /** Ends the process as a crash would; `start` makes another one, which has forgotten everything. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

export function isPebbleInstalled(): boolean {
  try {
    execFileSync('which', ['pebble'])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error('pebble is not installed')
    return false
  }
}

/** Ports that nothing listened on a moment ago. */
export function freePorts(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, freePort))
}

/** A certificate for 127.0.0.1 that stands for itself. PEM. */
export async function selfSigned(): Promise<{ certificate: string; key: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=Listener of a test',
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }]),
    ],
  })
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  const key = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
  return { certificate: `${certificate.toString('pem')}\n`, key }
}

function read(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { ca, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
    asked.on('error', reject)
  })
}

export async function startPebble(options: PebbleOptions): Promise<Pebble> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-pebble-'))
  const [port, managementPort, tlsPort] = await freePorts(3)
  const listener = await selfSigned()
  const caFile = join(directory, 'listener.pem')
  const settings = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: caFile,
    privateKey: join(directory, 'listener.key'),
    httpPort: options.httpPort,
    tlsPort,
    externalAccountBindingRequired: options.eab !== undefined,
    externalAccountMACKeys: options.eab ?? {},
    domainBlocklist: options.blocked ?? [],
    ...(options.validitySeconds && { certificateValidityPeriod: options.validitySeconds }),
  }
  await writeFile(caFile, listener.certificate)
  await writeFile(settings.privateKey, listener.key, { mode: 0o600 })
  await writeFile(join(directory, 'pebble.json'), JSON.stringify({ pebble: settings }))

  let child: ChildProcess | null = null
  let logged = ''

  async function start(): Promise<void> {
    const spawned = spawn(
      'pebble',
      ['-config', join(directory, 'pebble.json'), '-dnsserver', options.dnsServer, '-strict'],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env.PATH,
          PEBBLE_VA_NOSLEEP: '1',
          PEBBLE_AUTHZREUSE: '0',
          PEBBLE_WFE_NONCEREJECT: String(options.nonceReject ?? 0),
        },
      },
    )
    child = spawned
    const ready = Promise.withResolvers<void>()
    for (const stream of [spawned.stdout!, spawned.stderr!]) {
      stream.setEncoding('utf8')
      stream.on('data', (chunk: string) => {
        logged += chunk
        if (/ACME directory available at/.test(chunk)) ready.resolve()
      })
    }
    spawned.once('exit', () => ready.reject(new Error(`pebble did not start: ${logged}`)))
    await ready.promise
    await until(() => read(`https://127.0.0.1:${port}/dir`, listener.certificate).catch(() => null))
  }

  async function kill(): Promise<void> {
    const running = child
    child = null
    if (!running || running.exitCode !== null) return
    const exited = once(running, 'exit')
    running.kill('SIGKILL')
    await exited
  }

  await start()
  return {
    directoryUrl: `https://127.0.0.1:${port}/dir`,
    caFile,
    log: () => logged,
    orders: () => logged.match(/Added order /g)?.length ?? 0,
    root: () => read(`https://127.0.0.1:${managementPort}/roots/0`, listener.certificate),
    kill,
    start,
    async stop() {
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
