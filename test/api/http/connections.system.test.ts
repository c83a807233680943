// All that a request asks of the database shares one limit, from its first hook to its handler.
import { channel } from 'node:diagnostics_channel'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { buildApp } from '../../../src/api/app.ts'
import { groupConnections } from '../../../src/api/http/requests/connections.ts'
import { closeDatabase, openDatabase, poolUsage } from '../../../src/platform/database/database.ts'
import { Pool } from '../../../src/platform/database/pool.ts'
import { createTokenDirectory } from '../../../src/services/tokens/directory.ts'
import { listenOnce, sharedApi } from '../../helpers/api.ts'
import { createDatabase } from '../../helpers/database.ts'
import { openLink } from '../../helpers/link.ts'
import { openLink as openPausableLink } from '../../helpers/pausable-link.ts'
import { until } from '../../helpers/until.ts'

test('a request whose first statement hears nothing asks no more, whatever else it would ask', async () => {
  const database = await createDatabase()
  const link = await openLink(database.url)
  const pool = new Pool({ url: link.url, size: 2, class: 'requests', limits: { statementMs: 100 } })
  const app = Fastify()
  groupConnections(app)
  const ask = () =>
    pool.query('SHOW port').then(
      () => 'answered',
      ({ message }: Error) => message,
    )
  const said: string[] = []
  app.addHook('onRequest', async () => void said.push(await ask()))
  let streamed: FastifyRequest | undefined
  app.post('/things', async (request) => {
    streamed = request
    said.push(await ask(), await ask())
    return said
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const send = () =>
    fetch(`${url}/things`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
  await send()
  expect(said.splice(0)).toEqual(['answered', 'answered', 'answered'])
  const connecting = vi.spyOn(pg.Pool.prototype, 'connect')
  link.freeze()
  await send()
  const silent = 'Connection terminated: the database said nothing for too long'
  expect(said.splice(0)).toEqual([silent, silent, silent])
  // Other pools of this process may connect meanwhile.
  expect(connecting.mock.contexts.filter((one) => (one as unknown) === pool)).toHaveLength(1)
  link.thaw()
  await send()
  expect(said).toEqual(['answered', 'answered', 'answered'])
  connecting.mockRestore()
  // A response that has begun goes on after an outage.
  const { wait } = streamed!
  expect(wait).toMatchObject({ isOver: true })
  await app.close()
  await pool.end()
  link.close()
  await database.drop()
})

test('a GET whose database goes silent between two statements is a 503, and leaves no connection behind', async () => {
  const api = await sharedApi()
  const link = await openPausableLink(api.databaseUrl)
  const url = new URL(link.url)
  url.searchParams.set('application_name', 'silent')
  // Two connections for five requests: some wait for one meanwhile.
  const db = openDatabase(url.href, 2, { limits: { statementMs: 500 } })
  const tokenDirectory = createTokenDirectory(db, api.deps.notifications)
  let isSilent = false
  // By then the token was looked up, by a statement that was answered.
  const note = (message: unknown) =>
    (message as { fastify: FastifyInstance }).fastify.addHook('preHandler', async () => {
      if (isSilent) link.set('hang')
    })
  channel('fastify.initialization').subscribe(note)
  const app = await buildApp({ ...api.deps, db, tokenDirectory })
  channel('fastify.initialization').unsubscribe(note)
  const origin = await listenOnce(app)
  const get = async (token: string) => {
    const answer = await fetch(`${origin}/api/projects`, { headers: { authorization: `Bearer ${token}` } })
    return [answer.status, ((await answer.json()) as { code?: string }).code]
  }
  const all = (token: string) => Promise.all(Array.from({ length: 5 }, () => get(token)))
  const connections = () =>
    api.db.$queryRaw<unknown[]>`SELECT 1 FROM pg_stat_activity WHERE application_name = 'silent'`

  expect(await all(api.token)).toEqual(Array(5).fill([200, undefined]))
  expect(await connections()).not.toEqual([])
  isSilent = true
  const { token } = await api.newAccount()
  expect(await all(token)).toEqual(Array(5).fill([503, 'database_unavailable']))
  await until(async () => (await connections()).length === 0)
  expect(poolUsage(db)).toEqual({ size: 2, inUse: 0, idle: 0, waiting: 0 })
  expect(app.shares.open).toEqual({ requests: 0, waits: 0, streams: 0 })
  isSilent = false
  link.set('pass')
  expect(await all(token)).toEqual(Array(5).fill([200, undefined]))
  await app.close()
  await tokenDirectory.close()
  await closeDatabase(db)
  link.close()
  await api.stop()
})
