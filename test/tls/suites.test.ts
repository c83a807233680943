// Which cipher suites the edge and the API agree to: a handshake with each that OpenSSL knows.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, getCiphers, type SecureVersion } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildApp } from '../../src/api/app.ts'
import { tlsPolicy } from '../../src/tls/policy.ts'
import { type HttpsWorld, startHttpsWorld } from '../engines/edge/https-world.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { until } from '../helpers/until.ts'
import { createAuthority, type Issued, newRsaKeys, serveCertificate } from './authority.ts'

let world: HttpsWorld
let api: TestApi
let certificates: { ecdsa: Issued; rsa: Issued }

beforeAll(async () => {
  world = await startHttpsWorld()
  api = await sharedApi()
  await world.site('shop', { 'index.html': 'shop' })
  const { issue } = await createAuthority()
  const rsa = await issue(['rsa.test'], undefined, await newRsaKeys())
  certificates = { ecdsa: await issue(['ecdsa.test']), rsa }
  for (const [name, issued] of Object.entries(certificates)) {
    await world.attach('shop', `${name}.test`)
    await serveCertificate(world.db, world.vault, `${name}.test`, issued)
    await until(async () => (await agreed(world.httpsPort, name, 'TLSv1.3')) !== null)
  }
})
afterAll(async () => {
  await world.stop()
  await api.stop()
})

/** The suite of a handshake; null if there was none. */
function agreed(port: number, name: string, maxVersion: SecureVersion, ciphers?: string): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { port, host: '127.0.0.1', servername: `${name}.test`, rejectUnauthorized: false, maxVersion }
    const socket = connect({ ...options, ...(ciphers && { ciphers }) }, () => {
      resolve(socket.getCipher().name)
      socket.destroy()
    })
    socket.on('error', () => resolve(null))
  })
}

const suites12 = getCiphers()
  .filter((name) => !name.startsWith('tls_'))
  .map((name) => name.toUpperCase())
const suites13 = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256']

async function accepted(port: number, name: string): Promise<string[]> {
  const found: string[] = []
  // Nothing is too weak for this client.
  const weak = (suite: string) => `${suite}:@SECLEVEL=0`
  for (const suite of suites12) if ((await agreed(port, name, 'TLSv1.2', weak(suite))) === suite) found.push(suite)
  for (const suite of suites13) if ((await agreed(port, name, 'TLSv1.3', suite)) === suite) found.push(suite)
  return found.sort()
}

const intermediate = (kind: string) =>
  [
    `ECDHE-${kind}-AES128-GCM-SHA256`,
    `ECDHE-${kind}-AES256-GCM-SHA384`,
    `ECDHE-${kind}-CHACHA20-POLY1305`,
    ...suites13,
  ].sort()

test('the edge agrees to the suites of Mozilla’s intermediate list and to no other', async () => {
  expect(await accepted(world.httpsPort, 'ecdsa')).toEqual(intermediate('ECDSA'))
  expect(await accepted(world.httpsPort, 'rsa')).toEqual(intermediate('RSA'))
})

test('so does the API', async () => {
  for (const kind of ['ecdsa', 'rsa'] as const) {
    const { chain: cert, key } = certificates[kind]
    const app = await buildApp(api.deps, { ...tlsPolicy, cert, key })
    await app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.server.address() as AddressInfo
    expect(await accepted(port, kind)).toEqual(intermediate(kind.toUpperCase()))
    await app.close()
  }
})

test('the client of these tests could agree to CBC', async () => {
  const { chain: cert, key } = certificates.ecdsa
  const server = createServer({ cert, key }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  expect(await agreed(port, 'ecdsa', 'TLSv1.2', 'ECDHE-ECDSA-AES256-SHA')).toBe('ECDHE-ECDSA-AES256-SHA')
  server.close()
})
