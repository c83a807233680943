import { connect } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { buildApp } from '../../../src/api/app.ts'
import { listen } from '../../../src/platform/database/notifications.ts'
import { append } from '../../../src/services/events/events.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { checkMessage } from '../../helpers/responses.ts'
import { readStream } from '../../helpers/stream.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.listen()
  await api.newProject('site')
})
afterAll(() => api.stop())

const patch = (framework: string) => api.call('PATCH', '/projects/site', { body: { framework } })

describe('the list of events', () => {
  test('tells who changed what, newest first, with the resource as it was', async () => {
    await patch('vue')
    const { body } = await api.call('GET', '/events?limit=2')
    const project = (await api.call('GET', '/projects/site')).body
    const { body: token } = await api.call('GET', '/tokens/current')
    expect(Object.keys(body.events[0])).toEqual(['id', 'type', 'createdAt', 'actor', 'subject', 'data'])
    expect(body.events[0]).toMatchObject({
      type: 'project.updated',
      subject: project.id,
      actor: token.id,
      data: project,
    })
    expect(body.events[1].type).toBe('project.created')
  })

  test('filters by type and subject, and pages', async () => {
    const { body: project } = await api.call('GET', '/projects/site')
    const { body } = await api.call('GET', `/events?type=project.created&subject=${project.id}`)
    expect(body.events).toHaveLength(1)
    const { body: first } = await api.call('GET', '/events?limit=1')
    const { body: second } = await api.call('GET', `/events?limit=1&cursor=${first.nextCursor}`)
    expect(second.events[0].id < first.events[0].id).toBe(true)
    expect((await api.call('GET', '/events?type=nothing')).status).toBe(422)
  })

  test('shows nothing of another account, and to a narrowed token only its projects', async () => {
    const other = await api.newAccount()
    const { body } = await api.call('GET', '/events', { token: other.token })
    expect(body.events.map((event: { type: string }) => event.type)).toEqual(['account.created'])
    await api.newProject('apart')
    const { body: narrow } = await api.call('POST', '/tokens', { body: { name: 'n', projects: ['apart'] } })
    const seen = (await api.call('GET', '/events', { token: narrow.token })).body.events
    expect(seen.map((event: { type: string; data: { name: string } }) => [event.type, event.data.name])).toEqual([
      ['project.created', 'apart'],
    ])
  })
})

describe('the live stream', () => {
  afterEach(() => vi.useRealTimers())

  // Before all others: streams share their clocks, which are moved here.
  test('sends comments, so that nobody between takes it for dead, and ends with a token that expires', async () => {
    // Only the clocks of the stream are moved; sockets and the database go on as they do.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const { body } = await api.call('POST', '/tokens', { body: { name: 'short', scopes: ['events:read'] } })
    const { port } = api.app.server.address() as { port: number }
    const response = await fetch(`http://127.0.0.1:${port}/api/events?subject=none`, {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${body.token}` },
    })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader.read()).value).toBe('retry: 1000\n\n')
    vi.advanceTimersByTime(15_000)
    expect((await reader.read()).value).toBe(': alive\n\n')
    await api.db.token.update({ where: { id: body.id }, data: { expiresAt: new Date() } })
    vi.advanceTimersByTime(15_000)
    while (!(await reader.read()).done);
  })

  test('sends events as they happen, filtered like the list', async () => {
    const stream = await readStream(api, '/events?type=project.updated')
    await api.newProject('noise')
    await patch('svelte')
    const message = await stream.next()
    expect(message).toMatchObject({ event: 'project.updated', data: { data: { framework: 'svelte' } } })
    checkMessage(api.app, '/events', message!)
    stream.close()
  })

  test('resumes behind Last-Event-ID without a gap or a repeat', async () => {
    const frameworks = ['astro', 'next', 'nuxt', 'remix', 'gatsby']
    const stream = await readStream(api, '/events?type=project.updated')
    await patch(frameworks[0]!)
    const first = await stream.next()
    stream.close()
    for (const framework of frameworks.slice(1)) await patch(framework)
    const resumed = await readStream(api, '/events?type=project.updated', { 'last-event-id': first!.id! })
    const seen: string[] = []
    while (seen.length < 4) seen.push(((await resumed.next())!.data as { data: { framework: string } }).data.framework)
    expect(seen).toEqual(frameworks.slice(1))
    resumed.close()
  })

  test('never passes over an event whose transaction began early and committed late', async () => {
    const stream = await readStream(api, '/events?type=project.updated')
    const slow = new pg.Client({ connectionString: api.databaseUrl })
    await slow.connect()
    await slow.query('BEGIN')
    const { body: project } = await api.call('GET', '/projects/site')
    await slow.query(
      `INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
       VALUES ('evt_slow', $1, $2, 'project.updated', 'x', $2, $3, now())`,
      [api.accountId, project.id, JSON.stringify({ ...project, framework: 'slow' })],
    )
    await patch('hugo')
    await slow.query('COMMIT')
    await slow.end()
    const ids = [(await stream.next())!.id, (await stream.next())!.id]
    expect(ids).toContain('evt_slow')
    expect(new Set(ids).size).toBe(2)
    stream.close()
  })

  test('refuses a Last-Event-ID that is not an event of the account', async () => {
    const { status, body } = await api.call('GET', '/events', {
      headers: { accept: 'text/event-stream', 'last-event-id': 'evt_nope' },
    })
    expect(status).toBe(400)
    expect(body.code).toBe('invalid_cursor')
  })

  test('filters by subject, and shows a narrowed token only its projects', async () => {
    const [one, other] = [await api.newProject('one'), await api.newProject('other')]
    const { body: narrow } = await api.call('POST', '/tokens', { body: { name: 'n', projects: ['one'] } })
    const streams = [
      await readStream(api, `/events?subject=${one.id}`),
      await readStream(api, '/events?type=project.updated', {}, narrow.token),
    ]
    for (const { name } of [other, one]) await api.call('PATCH', `/projects/${name}`, { body: { framework: 'vue' } })
    for (const stream of streams) {
      let event = await stream.next()
      // What happened just before may be told too, while older transactions run.
      while (event?.event === 'project.created') event = await stream.next()
      expect(event).toMatchObject({ event: 'project.updated', data: { subject: one.id } })
      stream.close()
    }
  })

  test('goes on at another server behind Last-Event-ID while events are written, each once and in one order', async () => {
    const notifications = await listen(api.databaseUrl, api.deps.log)
    const replica = await buildApp({ ...api.deps, notifications })
    const event = { accountId: api.accountId, projectId: null, type: 'ticket.created' as const, actor: 'system' }
    const write = async (from: number) => {
      for (let n = from; n < from + 60; n++) await append(api.db, [{ ...event, subject: 'order', data: { n } }])
    }
    const whole = await readStream(api, '/events?subject=order')
    let stream = await readStream(api, '/events?subject=order')
    const writing = Promise.all([write(0), write(100), write(200), write(300)])
    const seen: string[] = []
    // From server to server after every forty events.
    for (let hop = 1; hop <= 6; hop++) {
      for (let n = 0; n < 40; n++) seen.push((await stream.next())!.id!)
      stream.close()
      const at = hop % 2 === 0 ? api : { ...api, app: replica }
      stream = await readStream(at, '/events?subject=order', { 'last-event-id': seen[seen.length - 1]! })
    }
    stream.close()
    await writing
    const log = await api.db.$queryRaw<{ id: string }[]>`
      SELECT id FROM event WHERE subject = 'order' ORDER BY xid, seq`
    const ids = log.map((row) => row.id)
    expect(seen).toEqual(ids)
    const unbroken: string[] = []
    while (unbroken.length < ids.length) unbroken.push((await whole.next())!.id!)
    expect(unbroken).toEqual(ids)
    whole.close()
    await replica.close()
    await notifications.close()
  })

  test('costs no query while nothing happens, and one for all readers when something does', async () => {
    const streams = await Promise.all(Array.from({ length: 30 }, () => readStream(api, '/events?subject=shared')))
    const event = { accountId: api.accountId, projectId: null, type: 'ticket.created' as const, actor: 'system' }
    const happen = async () => {
      await append(api.db, [{ ...event, subject: 'shared', data: {} }])
      await Promise.all(streams.map((stream) => stream.next()))
    }
    await happen()
    // The log is read again until older transactions have ended, so only the number at one time tells who reads.
    const query = pg.Pool.prototype.query as (...given: unknown[]) => unknown
    let [running, most] = [0, 0]
    const queries = vi.spyOn(pg.Pool.prototype, 'query').mockImplementation(async function (this: pg.Pool, ...given) {
      most = Math.max(most, ++running)
      return Promise.resolve(query.apply(this, given)).finally(() => running--)
    })
    await happen()
    queries.mockRestore()
    // The insert, and one read for all thirty.
    expect(most).toBeLessThanOrEqual(2)
    for (const stream of streams) stream.close()
  })

  test('cuts off a reader that does not read, and loses no event: it comes back behind the last one it got', async () => {
    const { accountId, token } = await api.newAccount()
    // Of this subject alone: the account's own first events may be told once more while older transactions run.
    const data = { text: 'x'.repeat(200_000) }
    const big = { accountId, projectId: null, type: 'ticket.created' as const, actor: 'system', subject: 'big', data }
    const { port } = api.app.server.address() as { port: number }
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `GET /api/events?subject=big HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\naccept: text/event-stream\r\n\r\n`,
    )
    const opened = Promise.withResolvers<void>()
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
      opened.resolve()
    })
    await opened.promise
    socket.pause()
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
    // What the kernel buffers for both ends comes on top of the megabyte.
    for (let n = 0; n < 80; n++) await append(api.db, [big])
    socket.resume()
    socket.on('error', () => {})
    await closed
    const got = [...text.matchAll(/^id: (evt_\w+)$/gm)].map(([, id]) => id!)
    expect(got.length).toBeLessThan(80)
    // The last one may have been cut in two, which a reader knows by the blank line that is missing.
    const whole = text.endsWith('\n\n') ? got : got.slice(0, -1)
    const resume = () => readStream(api, '/events?subject=big', { 'last-event-id': whole[whole.length - 1]! }, token)
    let resumed = await resume()
    while (whole.length < 80) {
      // On a busy machine this reader may be cut off too, and comes back in the same way.
      const message = await resumed.next().catch(() => null)
      if (message) whole.push(message.id!)
      else resumed = await resume()
    }
    const log = await api.db.event.findMany({ where: { accountId, subject: 'big' }, orderBy: { seq: 'asc' } })
    expect(whole).toEqual(log.map((event) => event.id))
    resumed.close()
  })

  test('ends when its token is revoked', async () => {
    const { body: token } = await api.call('POST', '/tokens', { body: { name: 'reader', scopes: ['events:read'] } })
    const stream = await readStream(api, '/events?type=project.updated', {}, token.token)
    expect(stream.status).toBe(200)
    await api.call('DELETE', `/tokens/${token.id}`)
    expect(await stream.next()).toBeNull()
  })

  test('goes on when another server of the same process closes and ends its own', async () => {
    const second = await buildApp(api.deps)
    const closing = await readStream({ ...api, app: second }, '/events?type=project.updated')
    const staying = await readStream(api, '/events?type=project.updated')
    await second.close()
    expect(await closing.next()).toBeNull()
    await patch('eleventy')
    expect(await staying.next()).toMatchObject({ data: { data: { framework: 'eleventy' } } })
    staying.close()
  })
})
