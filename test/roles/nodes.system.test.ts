// A node drains as at SIGTERM when the operator asks for it, stays alive, and takes work again.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { drainNodes } from '../../src/services/nodes/nodes.ts'
import { runCommand } from '../helpers/command.ts'
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
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-nodes-'))
  environment = { DATABASE_URL: database.url, DATA_DIR: dataDir, NODE_NAME: 'web-1', NODE_ADDRESS: '10.0.0.1' }
  token = (await createAccount(db, 'staff', ['*', 'operator'])).token
  program = await startProgram('api,worker', environment)
  await program.ready()
})
afterAll(async () => {
  if (program.child.exitCode === null) await program.stop('SIGKILL')
  await closeDatabase(db)
  await database.drop()
  await rm(environment.DATA_DIR!, { recursive: true, force: true })
})

function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return fetch(`http://127.0.0.1:${program.ports.PORT}/api${path}`, { ...init, headers })
}

const nodes = async () => ((await (await call('/operator/nodes')).json()) as { nodes: Record<string, unknown>[] }).nodes

test('the list shows the process with its roles, and a drained one serves on, unready and without new jobs', async () => {
  const [node] = await until(async () => (await nodes()).length > 0 && (await nodes()))
  expect(node).toMatchObject({ name: 'web-1', roles: ['api', 'worker'], address: '10.0.0.1', state: 'ACTIVE' })
  const listed = await runCommand(['nodes'], environment)
  expect(listed).toMatchObject({ code: 0, output: expect.stringMatching(/^nod_\w+ +web-1 +api,worker .* ACTIVE /m) })
  await until(async () => /^berth_nodes\{state="active"\} 1$/m.test(await program.metrics()))

  const drained = await runCommand(['drain', 'web-1'], environment)
  expect(drained).toEqual({ code: 0, output: `${node!.id} (api, worker on web-1) drains now.\n` })
  const state = await until(async () => {
    const found = await program.readiness()
    return found?.code === 503 && found
  })
  expect(state.checks.draining).toContain('berth undrain')
  const answer = await call('/projects')
  expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close'])
  const work = { requests: expect.any(Number), jobs: 0 }
  expect(await nodes()).toMatchObject([{ state: 'DRAINING', load: { work } }])
  await db.job.create({ data: { kind: 'reap', key: 'waits', payload: { deploymentIds: ['dpl_1'] } } })
  // A job of a paused worker is not even looked for; a request takes longer than a notification.
  await call('/projects')
  expect(await db.job.findFirst({ where: { key: 'waits' } })).toMatchObject({ lockedBy: null })

  const refused = await runCommand(['undrain', 'web-9'], environment)
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('There is no running node web-9') })
  await drainNodes(db, node!.id as string, false)
  await until(async () => (await program.readiness())?.code === 200)
  await until(async () => (await db.job.count({ where: { key: 'waits' } })) === 0)
  expect((await call('/projects')).headers.get('connection')).not.toBe('close')
  expect(await nodes()).toMatchObject([{ state: 'ACTIVE' }])
})

test('a stop in order takes the node out of the list, and a drained one can be stopped', async () => {
  await drainNodes(db, 'web-1', true)
  await until(async () => (await program.readiness())?.code === 503)
  expect(await program.stop()).toBe(0)
  expect(await db.node.count()).toBe(0)
})
