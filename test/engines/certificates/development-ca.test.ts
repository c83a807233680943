import { execFile, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Task } from '../../../src/engines/certificates/authority.ts'
import { createDevelopmentCa } from '../../../src/engines/certificates/development-ca.ts'
import { createIssuer, type Issuer } from '../../../src/engines/certificates/issuer.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { closeDatabase, type Database, openDatabase } from '../../../src/platform/database/database.ts'
import { createVault, placeOf } from '../../../src/platform/secrets/secrets.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { createDatabase } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

const run = promisify(execFile)

let api: TestApi
let engine: Issuer
let worker: Worker
beforeAll(async () => {
  api = await sharedApi()
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

describe('its root', () => {
  let database: Awaited<ReturnType<typeof createDatabase>>
  let db: Database
  let place: string
  const vault = createVault(Buffer.alloc(32, 7))
  beforeEach(async () => {
    database = await createDatabase()
    db = openDatabase(database.url, 10)
    place = await mkdtemp(join(tmpdir(), 'berth-ca-'))
  })
  afterEach(async () => {
    await closeDatabase(db)
    await database.drop()
    await rm(place, { recursive: true })
  })

  const open = (directory: string) => createDevelopmentCa({ db, vault, directory: join(place, directory) })
  const written = (directory: string) => readFile(join(place, directory, 'root.pem'), 'utf8')

  test('is one for all workers, each with a data directory of its own, also if ten start together', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `machine-${index}`)
    const made = await Promise.all(names.map(open))
    expect(new Set(made.map(({ rootPem }) => rootPem)).size).toBe(1)
    expect((await open('later')).rootPem).toBe(made[0]!.rootPem)
    const { publicKey } = new X509Certificate(made[0]!.rootPem)
    for (const [index, name] of names.entries()) {
      expect((await written(name)).trim()).toBe(made[0]!.rootPem.trim())
      expect(await readdir(join(place, name))).toEqual(['root.pem'])
      const { chain } = await made[index]!.obtain({ names: ['own.test'] } as Task)
      expect(new X509Certificate(chain).verify(publicKey)).toBe(true)
    }
  })

  test('is sealed in the database, and without its SECRETS_KEY nothing is signed', async () => {
    const made = await open('first')
    const { key, certificate } = await db.developmentCa.findFirstOrThrow()
    expect(certificate.trim()).toBe(made.rootPem.trim())
    expect(Buffer.from(key).includes('PRIVATE KEY')).toBe(false)
    const stranger = await createDevelopmentCa({ db, vault: createVault(Buffer.alloc(32, 8)), directory: place })
    expect(stranger.rootPem).toBe(made.rootPem)
    await expect(stranger.obtain({ names: ['own.test'] } as Task)).rejects.toThrow(/needs the key/)
  })

  test('is the one of the data directory where an older version had made one, and the first of two of them', async () => {
    for (const name of ['first', 'second']) {
      const older = await createDevelopmentCa({ db, vault, directory: join(place, name) })
      const [{ key }] = [await db.developmentCa.findFirstOrThrow()]
      const bundle = `${vault.open(key, placeOf.developmentCa('root'))}${older.rootPem}\n`
      await writeFile(join(place, name, 'root.key'), bundle, { mode: 0o600 })
      await db.developmentCa.deleteMany()
    }
    const [first, second] = [await written('first'), await written('second')]
    expect(first).not.toBe(second)
    expect((await open('first')).rootPem.trim()).toBe(first.trim())
    expect((await open('second')).rootPem.trim()).toBe(first.trim())
    expect(await written('second')).toBe(first)
  })
})
