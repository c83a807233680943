// An API that is killed while a file comes: nothing is published half, and the client goes on where it was.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, stat, utimes } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createArtifacts } from '../../src/platform/artifacts/local-artifacts.ts'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { createDatabase } from '../helpers/database.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

vi.setConfig({ testTimeout: 120_000 })

let database: Awaited<ReturnType<typeof createDatabase>>
let db: Database
let environment: Record<string, string>
let program: Program
let token: string

beforeAll(async () => {
  database = await createDatabase()
  db = openDatabase(database.url, 2)
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-killed-'))
  environment = { DATABASE_URL: database.url, DATA_DIR: dataDir }
  token = (await createAccount(db, 'one')).token
  program = await startProgram('api', environment)
  await program.ready()
})
afterAll(async () => {
  if (program.child.exitCode === null) await program.stop('SIGKILL')
  await closeDatabase(db)
  await database.drop()
  await rm(environment.DATA_DIR!, { recursive: true, force: true })
})

const headersOf = (more: Record<string, string> = {}) => ({ authorization: `Bearer ${token}`, ...more })

async function call(method: string, path: string, body?: string | Buffer, more: Record<string, string> = {}) {
  const headers = headersOf({ 'content-type': 'application/json', ...more })
  const url = `http://127.0.0.1:${program.ports.PORT}/api${path}`
  const answer = await fetch(url, { method, headers, ...(body !== undefined && { body: body as string }) })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

test('a file that was half there is gone on with after a restart, and the deployment begins when all of it is', async () => {
  const content = randomBytes(2_000_000)
  const hash = createHash('sha256').update(content).digest('hex')
  const half = 1_000_000
  await call('POST', '/projects', JSON.stringify({ name: 'site', framework: 'static' }))
  const files = [{ path: 'large.bin', sha256: hash, size: content.length }]
  const made = await call('POST', '/deployments', JSON.stringify({ project: 'site', source: { files } }))
  expect(made.status).toBe(201)

  const sent = request({
    ...{ port: program.ports.PORT, method: 'PUT', path: `/api/uploads/${hash}` },
    headers: headersOf({ 'content-type': 'application/octet-stream', 'content-length': String(content.length) }),
  })
  sent.on('error', () => {})
  sent.write(content.subarray(0, half))
  const uploads = join(environment.DATA_DIR!, 'uploads')
  const path = await until(async () => {
    const [name] = await readdir(uploads).catch(() => [])
    return name !== undefined && (await stat(join(uploads, name))).size === half && join(uploads, name)
  })
  await program.stop('SIGKILL')
  sent.destroy()
  const artifacts = createArtifacts(join(environment.DATA_DIR!, 'artifacts'))
  expect(await artifacts.isWhole(hash)).toBe(false)

  program = await startProgram('api', environment)
  await program.ready()
  expect((await call('GET', `/deployments/${made.body.id}`)).body).toMatchObject({
    state: 'BUILDING',
    uploads: { missing: [hash] },
  })
  expect(await db.job.count({ where: { kind: 'build' } })).toBe(0)
  // Nobody can be writing to it any more.
  const before = new Date(Date.now() - 60_000)
  await utimes(path, before, before)
  expect((await call('GET', `/uploads/${hash}`)).body).toMatchObject({ offset: half, complete: false })
  const octets = { 'content-type': 'application/octet-stream' }
  const range = { ...octets, 'content-range': `bytes ${half}-${content.length - 1}/${content.length}` }
  const rest = await call('PUT', `/uploads/${hash}`, content.subarray(half), range)
  expect(rest.body).toMatchObject({ complete: true, offset: content.length })
  expect(await artifacts.isWhole(hash)).toBe(true)
  expect(await db.job.count({ where: { kind: 'build' } })).toBe(1)
  expect(await readdir(uploads)).toEqual([])
})
