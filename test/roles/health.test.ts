// Health of a process with a single role, and the container's check of it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDatabase } from '../helpers/database.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

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

test('every role tells its health, readiness and metrics, and passes the check of the container', async () => {
  const check = async (environment: Record<string, string>) =>
    (await once(start(['dist/src/roles/health.js'], environment), 'exit'))[0]
  const look = async (roles: string[]) => {
    const environment = { METRICS_PORT: String(await freePort()) }
    const address = `http://127.0.0.1:${environment.METRICS_PORT}`
    start(['dist/src/cli.js', 'serve', '--roles', roles.join()], environment)
    const ready = await until(() => fetch(`${address}/readyz`).catch(() => null))
    expect(ready.status).toBe(200)
    const { status, checks } = (await ready.json()) as { status: string; checks: object }
    expect(status).toBe('ok')
    const jobs = roles.includes('worker') ? { jobs: 'ok' } : {}
    expect(checks).toEqual({ database: 'ok', notifications: 'ok', ...jobs })
    for (const role of roles) expect((await fetch(`${address}/readyz?role=${role}`)).status).toBe(200)
    expect((await fetch(`${address}/readyz?role=api`)).status).toBe(503)
    const metrics = await (await fetch(`${address}/metrics`)).text()
    expect(metrics.includes('berth_job_take_errors_total')).toBe(roles.includes('worker'))
    return environment
  }
  const [alone] = await Promise.all([look(['edge']), look(['worker', 'nameserver'])])
  expect(await Promise.all([check(alone), check({ METRICS_PORT: '1' })])).toEqual([0, 1])
})
