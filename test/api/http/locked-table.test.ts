// One table that is locked holds up its own routes: everything else is answered meanwhile.
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { poolUsage } from '../../../src/platform/database/database.ts'
import { type Answer, sharedApi, startApi, type TestApi } from '../../helpers/api.ts'
import { blockAccount, blockTable } from '../../helpers/block.ts'
import { until } from '../../helpers/until.ts'

let hasty: TestApi
let patient: TestApi
let release = async () => {}
beforeAll(async () => {
  hasty = await startApi({ DATABASE_LOCK_TIMEOUT_MS: '100' })
  patient = await sharedApi()
})
async function free(): Promise<void> {
  await release()
  release = async () => {}
}
afterEach(free)
afterAll(async () => {
  await hasty.stop()
  await patient.stop()
})

const times = <T>(count: number, work: () => T) => Array.from({ length: count }, work)

/** Requests that need what is locked: a part of them holds as many connections as it may, the others wait. */
async function pileUp(table: string, ask: () => Promise<Answer>): Promise<{ statuses: Promise<number[]> }> {
  release = await blockTable(patient, table)
  const answers = Promise.all(times(40, ask))
  await until(() => poolUsage(patient.db).waiting > 20)
  return { statuses: answers.then((all) => all.map(({ status }) => status)) }
}

test('other routes, the token of a newcomer and readiness feel nothing', async () => {
  const { token } = await patient.newAccount()
  const piled = await pileUp('ticket', () => patient.call('GET', '/tickets'))
  expect(poolUsage(patient.db).inUse).toBeLessThan(poolUsage(patient.db).size)
  for (const path of ['/projects', '/deployments', '/domains', '/events', '/account', '/tokens']) {
    expect((await patient.call('GET', path, { token })).status).toBe(200)
  }
  const made = await patient.call('POST', '/webhooks', { token, body: { url: 'https://example.com', events: ['*'] } })
  expect(made.status).toBe(201)
  expect((await patient.app.inject({ url: '/readyz' })).json()).toMatchObject({ status: 'ok' })
  await free()
  expect(await piled.statuses).toContain(200)
})

test('the event log, which every change writes, holds up no reading', async () => {
  let next = 0
  const bodies = [
    () => ['/tickets', { subject: 'x', message: 'y' }] as const,
    () => ['/tokens', { name: 'x' }] as const,
    () => ['/projects', { name: `p${next}`, framework: 'static', repo: 'test/p' }] as const,
  ]
  const piled = await pileUp('event', () => {
    const [path, body] = bodies[next++ % bodies.length]!()
    return patient.call('POST', path, { body })
  })
  for (const path of ['/projects', '/tickets', '/account']) expect((await patient.call('GET', path)).status).toBe(200)
  await free()
  expect(await piled.statuses).toContain(201)
})

test('changes of tokens wait for their account one by one, and none of those that wait holds a connection', async () => {
  const { token, accountId } = await patient.newAccount()
  const { body } = await patient.call('POST', '/tokens', { token, body: { name: 't' } })
  release = await blockAccount(patient, accountId)
  const changes = times(30, () => patient.call('PATCH', `/tokens/${body.id}`, { token, body: { name: 'u' } }))
  const others = times(10, () => patient.call('DELETE', '/members/mbr_nobody', { token }))
  await until(() => poolUsage(patient.db).inUse === 1)
  for (const path of times(10, () => '/projects')) expect((await patient.call('GET', path)).status).toBe(200)
  expect(poolUsage(patient.db)).toMatchObject({ inUse: 1, waiting: 0 })
  await free()
  expect((await Promise.all(changes)).map(({ status }) => status)).toEqual(times(30, () => 200))
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual(times(10, () => 404))
})

const told = ({ status, headers, body }: Answer) => {
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  return `${status} ${body.code} ${body.detail}`
}
const writeWithKey = (where: TestApi) =>
  where.call('POST', '/tickets', {
    body: { subject: 'x', message: 'y' },
    headers: { 'idempotency-key': randomUUID() },
  })

test('its own routes are told to come back, in a transaction or not', async () => {
  release = await blockTable(hasty, 'ticket')
  const answers = await Promise.all([hasty.call('GET', '/tickets'), writeWithKey(hasty)])
  for (const answer of answers) expect(told(answer)).toMatch(/^503 overloaded The database took too long/)
  await free()
  expect((await writeWithKey(hasty)).status).toBe(201)
})
