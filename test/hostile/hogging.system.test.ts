// One tenant that wants the API for itself: whatever it holds open, the others are answered.
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApi, type TestApi } from '../helpers/api.ts'
import { blockProjects } from '../helpers/block.ts'
import { type Connection, listening, openConnection, requestOf } from '../helpers/connection.ts'
import { until } from '../helpers/until.ts'

const perAccount = 20
const maxInFlight = 25
let api: TestApi
let hog: { accountId: string; token: string }
let id: string
beforeAll(async () => {
  api = await startApi({
    MAX_IN_FLIGHT: String(maxInFlight),
    MAX_IN_FLIGHT_PER_ACCOUNT: String(perAccount),
    QUOTA_WAITS: '5',
    QUOTA_STREAMS: '5',
  })
  hog = await api.newAccount()
  await api.newProject('hog', { token: hog.token })
  id = (await api.call('POST', '/deployments', { token: hog.token, body: { project: 'hog' } })).body.id
})
afterAll(() => api.stop())

const opened: Connection[] = []
async function open(bytes: string): Promise<Connection> {
  const connection = await openConnection(api)
  opened.push(connection)
  connection.send(bytes)
  return connection
}

/** Whatever the hog did, it is over when its connections are. */
afterEach(async () => {
  for (const { socket } of opened.splice(0)) socket.destroy()
  await until(() => Object.values(api.app.shares.open).every((count) => count === 0))
  expect((await api.call('GET', '/regions', { token: hog.token })).status).toBe(200)
})

/** The others are answered, at once and with what they change. */
async function expectOpenForOthers(): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 4 }, () => api.call('GET', '/projects')))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const made = await api.call('POST', '/tickets', { body: { subject: 'open', message: 'it is' } })
  expect(made.status).toBe(201)
}

const json = (length: number) => ({ 'content-type': 'application/json', 'content-length': String(length) })

describe('a hog', () => {
  test('whose bodies come slowly has its own bound, and no place of others', async () => {
    const body = JSON.stringify({ subject: 'slow', message: 'it comes' })
    const slow: Connection[] = []
    for (let n = 0; n < perAccount; n++) {
      slow.push(await open(`${requestOf(hog.token, 'POST', '/tickets', json(body.length))}${body.slice(0, 5)}`))
    }
    await until(() => api.app.shares.open.requests === perAccount)
    const late = await open(`${requestOf(hog.token, 'POST', '/tickets', json(body.length))}${body.slice(0, 5)}`)
    expect(await late.answers(1)).toEqual([429])
    await expectOpenForOthers()
    for (const { send } of slow) send(body.slice(5))
    for (const { answers } of slow) expect(await answers(1)).toEqual([201])
  })

  test('whose work takes long has its own bound', async () => {
    const release = await blockProjects(api)
    for (let n = 0; n < perAccount * 2; n++) await open(requestOf(hog.token, 'GET', '/projects'))
    await until(() => opened.flatMap(({ statuses }) => statuses()).length === perAccount)
    expect(new Set(opened.flatMap(({ statuses }) => statuses()))).toEqual(new Set([429]))
    for (let n = 0; n < 4; n++) expect((await api.call('GET', '/regions')).status).toBe(200)
    await release()
    await expectOpenForOthers()
  })

  test('that leaves while its work goes on gets no second bound', async () => {
    const release = await blockProjects(api)
    const statuses = []
    for (let n = 0; n < maxInFlight * 2; n++) {
      const connection = await open(requestOf(hog.token, 'GET', '/projects'))
      await until(() => api.app.shares.open.requests === n + 1 || connection.statuses().length > 0)
      statuses.push(...connection.statuses())
      connection.socket.destroy()
    }
    expect(statuses).toEqual(Array.from({ length: maxInFlight * 2 - perAccount }, () => 429))
    // The work that nobody waits for still counts, for the hog alone.
    expect((await api.call('GET', '/regions', { token: hog.token })).status).toBe(429)
    for (let n = 0; n < 4; n++) expect((await api.call('GET', '/regions')).status).toBe(200)
    await release()
    await expectOpenForOthers()
  })

  test('that opens waits and streams and drops them at once leaves none behind', async () => {
    for (let n = 0; n < 200; n++) {
      const path = n % 2 ? '/events' : `/deployments/${id}?wait=60`
      const { socket } = await open(requestOf(hog.token, 'GET', path, n % 2 ? { accept: 'text/event-stream' } : {}))
      if (n % 3) socket.destroy()
      else socket.end()
    }
    await expectOpenForOthers()
  })

  test('that waits by HEAD and asks by OPTIONS is counted alike', async () => {
    for (let n = 0; n < 5; n++) await open(requestOf(hog.token, 'HEAD', `/deployments/${id}?wait=60`))
    await until(() => api.app.shares.usage(hog.accountId).waits === 5)
    const late = await open(requestOf(hog.token, 'HEAD', `/deployments/${id}?wait=60`))
    expect(await late.answers(1)).toEqual([403])
    const other = await open(requestOf(hog.token, 'OPTIONS', `/deployments/${id}?wait=60`))
    expect(await other.answers(1)).toEqual([405])
    await expectOpenForOthers()
  })

  test('that queues requests behind a wait on one connection begins none of them before it is over', async () => {
    const wait = requestOf(hog.token, 'GET', `/deployments/${id}?wait=3`)
    const connection = await open(wait + requestOf(hog.token, 'GET', '/regions').repeat(200))
    await until(() => api.app.shares.usage(hog.accountId).waits === 1)
    expect(connection.statuses()).toEqual([])
    await expectOpenForOthers()
    expect(api.app.shares.open.requests).toBe(0)
    expect(await connection.answers(201)).toEqual(Array(201).fill(200))
  })

  test('that queues waits and streams on one connection gets one at a time', async () => {
    const wait = requestOf(hog.token, 'GET', `/deployments/${id}?wait=60`)
    const stream = requestOf(hog.token, 'GET', '/events', { accept: 'text/event-stream' })
    await open((wait + stream).repeat(10))
    await until(() => api.app.shares.open.waits === 1)
    await expectOpenForOthers()
    expect(api.app.shares.usage(hog.accountId)).toEqual({ waits: 1, streams: 0 })
  })

  test('that floods a head with headers is cut off', async () => {
    const long = await open(`${requestOf(hog.token, 'GET', '/regions', { 'x-long': 'x'.repeat(20_000) })}`)
    expect(await long.answers(1)).toEqual([431])
    await long.ended
    const many = await open(
      `GET /api/regions HTTP/1.1\r\n${Array.from({ length: 5_000 }, (_, n) => `x${n}: 1\r\n`).join('')}`,
    )
    await many.ended
    expect(many.statuses()).toEqual([431])
    await expectOpenForOthers()
  })

  test('that never ends a head, or a body, is cut off', async () => {
    const { server } = api.app
    const { headersTimeout, requestTimeout } = server
    // A wait is answered in any case, and no connection is kept that long without a word.
    expect(headersTimeout).toBeLessThanOrEqual(30_000)
    expect(requestTimeout).toBeLessThanOrEqual(30_000)
    expect(server.timeout).toBeGreaterThan(60_000)
    server.headersTimeout = 1
    server.requestTimeout = 2
    try {
      const heads = await Promise.all(
        Array.from({ length: 50 }, () => open('GET /api/regions HTTP/1.1\r\nHost: x\r\n')),
      )
      const body = await open(`${requestOf(hog.token, 'POST', '/tickets', json(50))}{`)
      await expectOpenForOthers()
      for (const { ended } of heads) await ended
      await body.ended
      expect(body.statuses()).toEqual([408])
    } finally {
      Object.assign(server, { headersTimeout, requestTimeout })
    }
  })
})

test('pushes whose bodies come slowly from one address leave room for other addresses', async () => {
  const port = await listening(api)
  const url = `/hooks/git/prj_${'0'.repeat(24)}`
  const headers = { 'x-gitlab-token': 'none' }
  const head = `POST ${url} HTTP/1.1\r\nhost: x\r\nx-gitlab-token: none\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n`
  const answered: string[] = []
  const sockets = Array.from({ length: 60 }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
    socket.on('data', (chunk) => answered.push(String(chunk).slice(9, 12)))
    socket.on('error', () => {})
    socket.write(`${head}{`)
    return socket
  })
  await until(() => answered.length === 35)
  expect(new Set(answered)).toEqual(new Set(['429']))
  const other = await api.app.inject({ method: 'POST', url, headers, payload: {} })
  expect(other.statusCode).toBe(401)
  for (const socket of sockets) socket.destroy()
  await until(async () => {
    const { statusCode } = await api.app.inject({
      method: 'POST',
      url,
      headers,
      payload: {},
      remoteAddress: '127.0.0.2',
    })
    return statusCode === 401
  })
})
