// Health of a process without the API, and the container's check of it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createDatabase } from '../helpers/database.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

vi.setConfig({ testTimeout: 120_000 })

let database: Awaited<ReturnType<typeof createDatabase>>
let dataDir: string
const children: ChildProcess[] = []
beforeAll(async () => {
  database = await createDatabase()
  dataDir = await mkdtemp(join(tmpdir(), 'berth-health-'))
})
afterAll(async () => {
  const exits = children.filter(({ exitCode }) => exitCode === null).map((child) => once(child, 'exit'))
  for (const child of children) child.kill('SIGKILL')
  await Promise.all(exits)
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

function start(args: string[], environment: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, args, {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: database.url,
      DATA_DIR: dataDir,
      NAMESERVER_LISTEN: '127.0.0.1:0,127.0.0.1:0',
      EDGE_HTTP_PORT: '0',
      EDGE_HTTPS_PORT: '0',
      PORT: '0',
      ...environment,
    },
  })
  children.push(child)
  return child
}

test('roles without the API tell their health, readiness and metrics, and pass the check of the container', async () => {
  const environment = { METRICS_PORT: String(await freePort()) }
  const address = `http://127.0.0.1:${environment.METRICS_PORT}`
  const ask = async (query: string) => (await fetch(`${address}/readyz${query}`)).status
  const check = async (port = environment.METRICS_PORT) =>
    (await once(start(['dist/src/roles/health.js'], { METRICS_PORT: port }), 'exit'))[0]
  const roles = ['worker', 'edge', 'nameserver']
  start(['dist/src/cli.js', 'serve', '--roles', roles.join()], environment)
  // On a busy machine a first start has taken 20 s.
  const ready = await until(async () => {
    const answer = await fetch(`${address}/readyz`).catch(() => null)
    return answer?.status === 200 && answer
  }, 90_000)
  const { status, checks } = (await ready.json()) as { status: string; checks: object }
  expect(status).toBe('ok')
  expect(checks).toMatchObject({ database: 'ok', notifications: 'ok', jobs: 'ok', edge: 'ok', nameserver: 'ok' })
  for (const role of roles) expect(await ask(`?role=${role}`)).toBe(200)
  expect(await ask('?role=api')).toBe(503)
  expect(await (await fetch(`${address}/metrics`)).text()).toContain('berth_job_take_errors_total')
  expect(await Promise.all([check(), check('1')])).toEqual([0, 1])
})
