// A connection for notifications that is cut without a word: found by its heartbeat, and nobody relies on it meanwhile.
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { buildApp } from '../../src/api/app.ts'
import { follow } from '../../src/platform/database/mirror.ts'
import { listen, type Notifications, notificationsReadiness } from '../../src/platform/database/notifications.ts'
import { createHealth } from '../../src/platform/observe/health.ts'
import { createTokenDirectory, type TokenDirectory } from '../../src/services/tokens/directory.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { type Link, openLink } from '../helpers/link.ts'
import { readStream } from '../helpers/stream.ts'
import { until } from '../helpers/until.ts'

const log = pino({ level: 'silent' })
let api: TestApi
let link: Link
/** Another replica on the same database, which hears of changes through the link. */
let replica: TestApi
let notifications: Notifications
let tokenDirectory: TokenDirectory
beforeAll(async () => {
  api = await sharedApi()
  link = await openLink(api.databaseUrl)
  notifications = await listen(link.url, log)
  tokenDirectory = createTokenDirectory(api.db, notifications)
  const health = createHealth(['api'])
  health.add('notifications', notificationsReadiness(notifications))
  const deps = { ...api.deps, notifications, tokenDirectory, health }
  replica = { ...api, deps, app: await buildApp(deps) }
})
afterAll(async () => {
  await replica.app.close()
  await tokenDirectory.close()
  await notifications.close()
  link.close()
  await api.stop()
})

async function ask(app: FastifyInstance, path: string, token = api.token): Promise<number> {
  return (await app.inject({ url: `/api${path}`, headers: { authorization: `Bearer ${token}` } })).statusCode
}
const readiness = async () => (await replica.app.inject({ url: '/readyz' })).json()

test('stays while its heartbeats arrive', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const quiet = await listen(api.databaseUrl, log)
  const lost = vi.fn()
  quiet.on('lost', lost)
  let heard = ''
  quiet.on('job', (kind) => {
    heard = kind
  })
  const [{ pid }] = await api.db.$queryRaw<[{ pid: number }]>`
    SELECT pid FROM pg_stat_activity WHERE datname = current_database()
      AND (query LIKE 'SET %; LISTEN %' OR query LIKE 'NOTIFY berth_heartbeat%') ORDER BY backend_start DESC LIMIT 1`
  let sentAt = 0
  for (let beat = 1; beat <= 4; beat++) {
    vi.advanceTimersByTime(1_000)
    await until(async () => {
      const [{ at } = { at: new Date(0) }] = await api.db.$queryRaw<{ at: Date }[]>`
        SELECT state_change AS at FROM pg_stat_activity
        WHERE pid = ${pid} AND state = 'idle' AND query LIKE 'NOTIFY berth_heartbeat%'`
      const isNew = (at?.getTime() ?? 0) > sentAt
      if (isNew) sentAt = at.getTime()
      return isNew
    })
    // Notifications come in order: with this one, the heartbeat before it has come.
    await api.db.$executeRaw`SELECT pg_notify('berth_job', ${`beat ${beat}`})`
    await until(() => heard === `beat ${beat}`)
  }
  expect(lost).not.toHaveBeenCalled()
  await quiet.close()
  vi.useRealTimers()
})

test('that is frozen keeps no revoked token alive, makes the replica unready, and streams go on', async () => {
  const made = await api.call('POST', '/tokens', { body: { name: 'stolen' } })
  const { id, token: secret } = made.body
  // In its memory, from where it would be taken for a minute.
  await until(async () => (await ask(replica.app, '/projects', secret)) && tokenDirectory.findKnown(secret))
  expect(await readiness()).toMatchObject({ status: 'ok' })
  const stream = await readStream(replica, '/events')

  link.freeze()
  expect((await api.call('DELETE', `/tokens/${id}`)).status).toBe(204)
  expect(await ask(api.app, '/projects', secret)).toBe(401)
  await until(async () => (await ask(replica.app, '/projects', secret)) === 401)
  // Not at once if a late notice of the token's creation had it looked up again.
  await until(async () => (await readiness()).status === 'unavailable')
  expect((await readiness()).checks.notifications).toBe('The connection for database notifications is lost.')
  // It asks the database for every token meanwhile, also a good one.
  expect(tokenDirectory.findKnown(api.token)).toBeUndefined()
  expect(await ask(replica.app, '/projects')).toBe(200)
  expect(tokenDirectory.findKnown(api.token)).toBeUndefined()
  await api.call('POST', '/tickets', { body: { subject: 'unheard', message: 'x' } })
  for (let event = ''; event !== 'ticket.created'; ) event = (await stream.next())!.event!

  link.thaw()
  await until(async () => (await readiness()).status === 'ok')
  await until(async () => (await ask(replica.app, '/projects')) && tokenDirectory.findKnown(api.token))
  stream.close()
})

test('while it is lost, a wait does not wait for what cannot come', async () => {
  await api.newProject('waiting')
  const { id } = (await api.call('POST', '/deployments', { body: { project: 'waiting' } })).body
  const unheard = { ...notifications, connected: false, on: notifications.on, nextEvent: notifications.nextEvent }
  const app = await buildApp({ ...api.deps, notifications: unheard })
  expect(await ask(app, `/deployments/${id}?wait=60`)).toBe(200)
  await app.close()
})

test('while it is lost, copies in memory are compared with the database again and again', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const unheard = { connected: false, on: () => () => {} } as unknown as Notifications
  const compare = vi.fn(async () => [])
  const source = { what: 'hosts', listen: () => () => {}, compare, read: async () => {} }
  const following = await follow(source, unheard, log)
  const before = compare.mock.calls.length
  vi.advanceTimersByTime(5_000)
  await until(() => compare.mock.calls.length > before)
  await following.close()
  vi.useRealTimers()
})
