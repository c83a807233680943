import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApi, type TestApi } from '../helpers/api.ts'
import { readStream } from '../helpers/stream.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi()
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
  test('sends events as they happen, filtered like the list', async () => {
    const stream = await readStream(api, '/events?type=project.updated')
    await api.newProject('noise')
    await patch('svelte')
    expect(await stream.next()).toMatchObject({ event: 'project.updated', data: { data: { framework: 'svelte' } } })
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

  test('ends when its token is revoked', async () => {
    const { body: token } = await api.call('POST', '/tokens', { body: { name: 'reader', scopes: ['events:read'] } })
    const stream = await readStream(api, '/events?type=project.updated', {}, token.token)
    expect(stream.status).toBe(200)
    await api.call('DELETE', `/tokens/${token.id}`)
    expect(await stream.next()).toBeNull()
  })
})
