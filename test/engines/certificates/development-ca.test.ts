import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDevelopmentCa } from '../../../src/engines/certificates/development-ca.ts'
import { createIssuer, type Issuer } from '../../../src/engines/certificates/issuer.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { placeOf } from '../../../src/platform/secrets.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

const run = promisify(execFile)

let api: TestApi
let engine: Issuer
let worker: Worker
beforeAll(async () => {
  api = await startApi()
  engine = await createIssuer(api.deps)
  worker = startWorker(api.db, api.deps.notifications, api.deps.log, { issue: engine.issue })
  await engine.start()
  await api.newProject('hello')
})
afterAll(async () => {
  await worker.stop()
  await engine.close()
  await api.stop()
})

const rootFile = () => join(api.config.dataDir, 'ca', 'root.pem')

/** Serves with a certificate, and tells what a client that knows the root alone makes of it. */
async function trusted(
  { id, chain, key: sealed }: { id: string; chain: string; key: Uint8Array },
  host: string,
): Promise<{ node: boolean; curl: string }> {
  const key = api.deps.vault.open(sealed, placeOf.certificate(id))
  const server = createServer({ cert: chain, key }, (_request, response) => void response.end('hello'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const ca = await readFile(rootFile())
  const node = await new Promise<boolean>((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', servername: host, ca }, () => resolve(socket.authorized))
    socket.on('error', () => resolve(false))
    socket.on('secureConnect', () => socket.end())
  })
  const address = `${host}:${port}`
  const curl = await run('curl', [
    '-s',
    '--cacert',
    rootFile(),
    '--resolve',
    `${address}:127.0.0.1`,
    `https://${address}/`,
  ])
    .then(({ stdout }) => stdout)
    .catch(() => '')
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  return { node, curl }
}

const hasCurl = spawnSync('curl', ['--version']).status === 0

test('a verified domain has a certificate at once that whoever trusts the root trusts, and no network is needed', async () => {
  await api.call('POST', '/domains', { body: { project: 'hello', name: 'own.test' } })
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name: 'own.test' } })
  await markVerified(api.db, api.config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
  await until(async () => (await api.call('GET', '/domains/own.test')).body.ssl === 'ACTIVE')
  const { body } = await api.call('GET', '/domains/own.test')
  expect(body.certificate).toMatchObject({ sans: ['own.test'], lastError: null })
  expect(body.certificate.issuer).toMatch(/^CN=Berth Development CA [0-9a-f]{8}$/)
  const days = (Date.parse(body.certificate.notAfter) - Date.now()) / 86_400_000
  expect(Math.round(days)).toBe(90)
  const { inService } = await api.db.domain.findUniqueOrThrow({ where: { id }, include: { inService: true } })
  const found = await trusted(inService!, 'own.test')
  expect(found.node).toBe(true)
  if (hasCurl) expect(found.curl).toBe('hello')
})

test('a host directly below localhost is trusted too, although verifiers refuse its wildcard, as soon as it is there', async () => {
  await api.newProject('shop')
  const find = () => api.db.certificate.findFirst({ where: { accountId: null, names: { has: 'shop.localhost' } } })
  await until(async () => (await find()) !== null)
  const certificate = (await find())!
  expect(certificate.names).toEqual(expect.arrayContaining(['localhost', '*.localhost', 'hello.localhost']))
  for (const host of ['shop.localhost', 'hello.localhost', 'localhost']) {
    const found = await trusted(certificate, host)
    expect([host, found.node]).toEqual([host, true])
    if (hasCurl) expect([host, found.curl]).toEqual([host, 'hello'])
  }
  // The reason why each is named.
  expect((await trusted(certificate, 'other.localhost')).node).toBe(false)
})

test('its root is made once, by ten processes that start together, and nobody else reads its key', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-ca-'))
  const made = await Promise.all(Array.from({ length: 10 }, () => createDevelopmentCa(join(directory, 'ca'))))
  expect(new Set(made.map(({ rootPem }) => rootPem)).size).toBe(1)
  const again = await createDevelopmentCa(join(directory, 'ca'))
  expect(again.rootPem).toBe(made[0]!.rootPem)
  expect((await readFile(join(directory, 'ca', 'root.pem'), 'utf8')).trim()).toBe(made[0]!.rootPem.trim())
  const { mode } = await stat(join(directory, 'ca', 'root.key'))
  expect(mode & 0o777).toBe(0o600)
  expect(await readFile(join(directory, 'ca', 'root.pem'), 'utf8')).not.toMatch('PRIVATE')
  await rm(directory, { recursive: true })
})
