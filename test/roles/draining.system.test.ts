// A stop by SIGTERM fails no request: the process says that it stops, serves on for a while, then closes.
import { get } from 'node:http'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { createDeployment } from '../../src/services/deployments/deployments.ts'
import type { Actor } from '../../src/services/identity/actor.ts'
import { createProject, findProject } from '../../src/services/projects/projects.ts'
import { type HttpsWorld, startHttpsWorld } from '../engines/edge/https-world.ts'
import { balanced, type Group } from '../helpers/balancer.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'
import { keptHttp, keptHttp2, startVisitors } from '../helpers/visitors.ts'

vi.setConfig({ testTimeout: 3_600_000 })

const restarts = 10

let world: HttpsWorld
let group: Group
let actor: Actor
let token: string
const started: Program[] = []

async function start(roles: string, drainSeconds: number, ports?: Program['ports']): Promise<Program> {
  const environment = {
    DATABASE_URL: world.databaseUrl,
    DATA_DIR: world.config.dataDir,
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    RATE_LIMIT_PER_MINUTE: '1000000',
    QUOTA_OPEN_TICKETS: '1000000',
    QUOTA_MESSAGES_PER_MONTH: '1000000',
    DRAIN_SECONDS: String(drainSeconds),
  }
  const program = await startProgram(roles, environment, ports)
  started.push(program)
  return program
}

beforeAll(async () => {
  world = await startHttpsWorld()
  await world.site('shop', { 'index.html': 'open' })
  await world.secure('shop', 'shop.test')
  const made = await createAccount(world.db, 'client')
  token = made.token
  actor = { accountId: made.account.id, tokenId: 'system', scopes: ['*'], projectIds: null }
})
afterAll(async () => {
  await group?.close()
  for (const { child, stop } of started) if (child.exitCode === null) await stop('SIGKILL')
  await world.stop()
})

/** A response as it comes, until it ends; `complete` is false if it was cut off. */
function ask(port: number, path: string, headers: Record<string, string>) {
  const response = Promise.withResolvers<{ status: number; connection: string | undefined }>()
  const ended = new Promise<{ text: string; complete: boolean }>((resolve) => {
    const sent = get({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      let text = ''
      response.resolve({ status: answer.statusCode!, connection: answer.headers.connection })
      answer.on('data', (chunk) => (text += chunk)).on('error', () => {})
      answer.on('close', () => resolve({ text, complete: answer.complete }))
    })
    sent.on('error', response.reject)
  })
  return { response: response.promise, ended }
}

test('no request fails while an API and an edge are restarted again and again', async () => {
  group = balanced(await Promise.all([start('api,edge', 2), start('api,edge', 2)]))
  await Promise.all(group.programs.map(({ ready }) => ready()))
  const [api, http, https] = await Promise.all([
    group.balance('PORT'),
    group.balance('EDGE_HTTP_PORT'),
    group.balance('EDGE_HTTPS_PORT'),
  ])
  const authorization = { authorization: `Bearer ${token}` }
  const ticket = { subject: 'Help', message: 'It broke.' }
  const headers = { ...authorization, 'content-type': 'application/json' }
  const page = { path: '/', headers: { host: 'shop.localhost' } }
  const secure = { path: '/', headers: { host: 'shop.test' } }
  const ca = world.authority.rootPem
  const visitors = startVisitors({
    read: { status: 200, ask: keptHttp(api.port, { path: '/api/projects', headers: authorization }) },
    write: {
      status: 201,
      ask: keptHttp(api.port, { path: '/api/tickets', headers, method: 'POST', body: JSON.stringify(ticket) }),
    },
    page: { status: 200, ask: keptHttp(http.port, page) },
    https: { status: 200, ask: keptHttp(https.port, secure, ca) },
    http2: { status: 200, ask: keptHttp2(https.port, 'shop.test', ca) },
  })
  const total = () => Object.values(visitors.answered).reduce((sum, count) => sum + count, 0)
  for (let restart = 0; restart < restarts; restart++) {
    const index = restart % group.programs.length
    const program = group.programs[index]!
    expect(await program.stop()).toBe(0)
    const next = await start('api,edge', 2, program.ports)
    group.programs[index] = next
    await next.ready()
    // Some are answered by both before the next one stops.
    const before = total()
    await until(() => total() > before + 20)
    expect(visitors.failures).toEqual([])
    if (restart % 10 === 9) console.log(`${restart + 1} restarts, ${total()} requests, none failed`)
  }
  await visitors.stop()
  expect(visitors.failures).toEqual([])
  for (const [kind, count] of Object.entries(visitors.answered)) expect([kind, count > 10]).toEqual([kind, true])
  expect(await world.db.ticket.count()).toBe(visitors.answered.write)
})

test('a process that stops is not ready, serves each connection once more, and ends waits and streams whole', async () => {
  const [program] = group.programs
  const { ports, readiness } = program!
  await createProject(world.db, world.urls, actor, { region: 'r', input: { name: 'slow', repo: 'a/b' } })
  const project = await findProject(world.db, actor, 'slow')
  const plan = { project, ref: 'main', commit: 'c'.repeat(40), production: false, region: 'r', source: 'api' as const }
  const { id } = await createDeployment(world.db, world.urls, actor, plan)
  const headers = { authorization: `Bearer ${token}` }
  const wait = ask(ports.PORT, `/api/deployments/${id}?wait=60`, headers)
  const stream = ask(ports.PORT, '/api/events', { ...headers, accept: 'text/event-stream' })
  expect((await stream.response).status).toBe(200)
  const open = async () => /berth_http_open\{kind="waits"\} 1/.test(await program!.metrics())
  await until(open)

  const exited = program!.stop()
  await until(async () => (await readiness())?.code === 503)
  expect((await readiness())!.checks.draining).toContain('stopping')
  expect(await ask(ports.PORT, '/readyz', {}).response).toEqual({ status: 503, connection: 'close' })
  expect(await ask(ports.PORT, '/api/projects', headers).response).toEqual({ status: 200, connection: 'close' })
  for (const port of [ports.EDGE_HTTP_PORT, ports.EDGE_HTTP_PORT]) {
    expect(await ask(port, '/', { host: 'shop.localhost' }).response).toEqual({ status: 200, connection: 'close' })
  }
  expect(await wait.response).toMatchObject({ status: 200 })
  expect(await wait.ended).toMatchObject({ complete: true })
  expect(await stream.ended).toMatchObject({ complete: true })
  expect(await exited).toBe(0)
})

test('SIGINT does not wait, and a second SIGTERM ends at once', async () => {
  const [patient, hasty] = await Promise.all([start('nameserver', 3600), start('nameserver', 3600)])
  await Promise.all([patient.ready(), hasty.ready()])
  expect(await hasty.stop('SIGINT')).toBe(0)
  void patient.stop()
  await until(async () => (await patient.readiness())?.code === 503)
  // The first half second belongs to the first signal: npm passes on what its whole group was sent.
  await until(() => !patient.child.kill('SIGTERM'))
  expect(patient.child.exitCode).toBe(143)
})
