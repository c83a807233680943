// When the SDK sends a request again, and when it must not.
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type BerthError, createBerth } from '../../sdk/src/index.ts'

afterEach(() => void vi.useRealTimers())

type Step = (request: Request) => Response | Promise<Response>

/** A client whose requests meet one step after the other, and what it has sent. */
function through(...steps: Step[]) {
  const sent: Request[] = []
  const berth = createBerth({
    baseUrl: 'http://berth.test/api',
    token: 'brt_x',
    fetch: async (request) => {
      sent.push(request)
      return steps[sent.length - 1]!(request)
    },
  })
  return { berth, sent }
}

const ok: Step = () => Response.json({ id: 'tkt_1' })
const lost: Step = () => {
  throw new TypeError('fetch failed')
}
const brokenOff: Step = () => {
  const body = new ReadableStream({ start: (stream) => stream.error(new TypeError('terminated')) })
  return new Response(body, { status: 201 })
}
const answer =
  (status: number, headers: Record<string, string> = {}): Step =>
  () =>
    Response.json({ code: 'overloaded', detail: 'Later' }, { status, headers })
const databaseLost: Step = () =>
  Response.json({ code: 'database_unavailable', detail: '' }, { status: 503, headers: { 'retry-after': '2' } })
const ticket = { body: { subject: 'S', message: 'M' } }
const one = { params: { path: { id: 'tkt_1' } } }
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => null,
    (error) => error as BerthError,
  )
const keyOf = (request: Request) => request.headers.get('idempotency-key')

/** What a call comes to, without waiting for its pauses. */
async function hurried<T>(call: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  let over = false
  const result = call().finally(() => {
    over = true
  })
  result.catch(() => {})
  // Not until no timer is left: other tests share this process, and what they left may set one after the other.
  while (!over) await vi.advanceTimersByTimeAsync(1_000)
  return result
}

describe('an answer that is lost', () => {
  test.each([
    ['GET', (berth: ReturnType<typeof createBerth>) => berth.get('/tickets/{id}', one)],
    ['POST', (berth: ReturnType<typeof createBerth>) => berth.post('/tickets', ticket)],
    ['DELETE', (berth: ReturnType<typeof createBerth>) => berth.delete('/webhooks/{id}', one)],
  ])('is asked for again by %s, with the same key', async (_method, call) => {
    const { berth, sent } = through(lost, brokenOff, answer(502), ok)
    expect(await hurried(() => call(berth))).toEqual({ id: 'tkt_1' })
    expect(sent).toHaveLength(4)
    expect(new Set(sent.map(keyOf)).size).toBe(1)
  })

  test('is not asked for again where that could change more than was asked for', async () => {
    const patch = through(lost, ok)
    await expect(patch.berth.patch('/tickets/{id}', { ...one, body: { priority: 'high' } })).rejects.toThrow(
      'fetch failed',
    )
    const unsure = through(databaseLost, ok)
    const change = unsure.berth.patch('/tickets/{id}', { ...one, body: { priority: 'high' } })
    expect([await failure(change), unsure.sent.length]).toMatchObject([{ code: 'database_unavailable' }, 1])
    const remove = through(answer(502), ok)
    const params = { ...one.params, header: { 'If-Match': '"abc"' } }
    expect(await failure(remove.berth.delete('/webhooks/{id}', { params }))).toMatchObject({ status: 502 })
    expect([patch.sent.length, remove.sent.length]).toEqual([1, 1])
  })

  test.each([
    ['lost', lost],
    ['broken off', brokenOff],
    ['one of a proxy', answer(502)],
    ['one of a server without its database', databaseLost],
  ])('of a DELETE that was carried out all the same is no failure: %s', async (_kind, first) => {
    const { berth, sent } = through(first, answer(404))
    expect(await hurried(() => berth.delete('/webhooks/{id}', one))).toBeUndefined()
    expect(sent).toHaveLength(2)
  })

  test('of a DELETE is none where the first attempt was refused, or found nothing', async () => {
    const refused = through(answer(429, { 'retry-after': '1' }), answer(404))
    expect(await hurried(() => failure(refused.berth.delete('/webhooks/{id}', one)))).toMatchObject({ status: 404 })
    vi.useRealTimers()
    const missing = through(answer(404))
    expect(await failure(missing.berth.delete('/webhooks/{id}', one))).toMatchObject({ status: 404 })
    const read = through(lost, answer(404))
    expect(await hurried(() => failure(read.berth.get('/webhooks/{id}', one)))).toMatchObject({ status: 404 })
  })

  test('is given up after some attempts', async () => {
    const { berth, sent } = through(lost, lost, lost, lost, lost, ok)
    await expect(hurried(() => berth.get('/account'))).rejects.toThrow('fetch failed')
    expect(sent).toHaveLength(5)
  })
})

describe('an answer that says when to come again', () => {
  test.each([
    ['seconds', () => '17'],
    ['a date', () => new Date(Date.now() + 17_000).toUTCString()],
  ])('is obeyed: %s', async (_form, retryAfter) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now: 1_800_000_000_000 })
    const { berth, sent } = through(answer(429, { 'retry-after': retryAfter() }), ok)
    // Nothing of a refused request was done, so that even a PATCH may be sent again.
    const changed = berth.patch('/tickets/{id}', { ...one, body: { priority: 'high' } })
    await vi.advanceTimersByTimeAsync(16_900)
    expect(sent).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await changed).toEqual({ id: 'tkt_1' })
  })

  test('is thrown where the wait would be long', async () => {
    const { berth, sent } = through(answer(503, { 'retry-after': '3600' }), ok)
    expect(await failure(berth.get('/account'))).toMatchObject({ status: 503, code: 'overloaded' })
    expect(sent).toHaveLength(1)
  })

  test('is not waited for by a caller who has left', async () => {
    const { berth, sent } = through(answer(429, { 'retry-after': '60' }), ok)
    const leaving = new AbortController()
    const call = failure(berth.get('/account', { signal: leaving.signal }))
    await vi.waitFor(() => expect(sent).toHaveLength(1))
    leaving.abort(new Error('enough'))
    expect(await call).toMatchObject({ message: 'enough' })
  })
})

test('what is refused for good is not sent again', async () => {
  for (const status of [400, 401, 403, 404, 409, 412, 422]) {
    const { berth, sent } = through(answer(status), ok)
    expect(await failure(berth.post('/tickets', ticket))).toMatchObject({ status })
    expect(sent, String(status)).toHaveLength(1)
  }
})

test('a key of the caller is kept, and another POST has another', async () => {
  const { berth, sent } = through(ok, ok, ok)
  await berth.post('/tickets', { ...ticket, params: { header: { 'Idempotency-Key': 'mine' } } })
  await berth.post('/tickets', ticket)
  await berth.post('/tickets', ticket)
  expect(keyOf(sent[0]!)).toBe('mine')
  expect(new Set(sent.map(keyOf)).size).toBe(3)
})

test('a name in a path is never another path', async () => {
  const { berth, sent } = through(ok)
  for (const project of ['', '.', '..']) {
    await expect(berth.delete('/projects/{project}/hook', { params: { path: { project } } })).rejects.toThrow(TypeError)
  }
  await berth.get('/projects/{project}', { params: { path: { project: '../a?b#c' } } })
  expect(sent.map(({ url }) => url)).toEqual(['http://berth.test/api/projects/..%2Fa%3Fb%23c'])
})

test('an answer that is not one of Berth’s is an error all the same', async () => {
  const { berth } = through(() => new Response('<h1>Bad gateway</h1>', { status: 404, statusText: 'Not Found' }))
  expect(await failure(berth.get('/account'))).toMatchObject({
    code: 'unknown',
    problem: null,
    message: '404 Not Found',
  })
})

test('a list ends where it says so, although an older server has a cursor there too', async () => {
  const page = (items: string[], nextCursor: string | null, hasMore?: boolean): Step => {
    return () => Response.json({ tickets: items, nextCursor, hasMore })
  }
  const collect = async (berth: ReturnType<typeof createBerth>) => {
    const found: unknown[] = []
    for await (const item of berth.list('/tickets')) found.push(item)
    return found
  }
  const newer = through(page(['a'], 'one', true), page(['b'], 'two', false))
  expect(await collect(newer.berth)).toEqual(['a', 'b'])
  expect(newer.sent[1]!.url).toContain('cursor=one')
  const older = through(page(['a'], 'one'), page(['b'], null))
  expect(await collect(older.berth)).toEqual(['a', 'b'])
})
