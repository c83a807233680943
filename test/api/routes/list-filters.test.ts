// Filters that all lists share the form of: several values, times, words; and cursors that a poller keeps.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId, timeOf } from '../../../src/platform/ids.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let token: string
let accountId: string
beforeAll(async () => {
  api = await sharedApi()
  ;({ token, accountId } = await api.newAccount())
  for (const name of ['one', 'two']) await api.newProject(name, { token })
})
afterAll(() => api.stop())

const get = (path: string) => api.call('GET', path, { token })

async function newDeployment(project: string, fields: { state?: string; commit?: string; ref?: string } = {}) {
  const { body } = await api.call('POST', '/deployments', { token, body: { project } })
  await api.db.deployment.update({ where: { id: body.id }, data: fields })
  return body.id as string
}

const ids = async (path: string) => {
  const { status, body, text } = await get(path)
  if (status !== 200) throw new Error(text)
  return (Object.values(body).find(Array.isArray) as { id: string }[]).map(({ id }) => id)
}

describe('several values', () => {
  test('are repeated, or have commas between, and are each named when they are wrong', async () => {
    const [ready, failed, building] = [
      await newDeployment('one', { state: 'READY' }),
      await newDeployment('two', { state: 'ERROR' }),
      await newDeployment('two'),
    ]
    expect(await ids('/deployments?state=READY,ERROR')).toEqual([failed, ready])
    expect(await ids('/deployments?state=READY&state=ERROR&state=READY')).toEqual([failed, ready])
    expect(await ids('/deployments?project=one,two&state=BUILDING')).toEqual([building])
    expect(await ids('/deployments?project=two,nowhere')).toEqual([building, failed])
    const { status, body } = await get('/deployments?state=READY,DONE')
    expect(status).toBe(422)
    expect(body.errors).toMatchObject([{ in: 'query', pointer: '#/state', code: 'not_allowed' }])
    expect((await get('/deployments?state=')).status).toBe(422)
  })

  test('of types of events may be prefixes', async () => {
    await api.call('PATCH', '/projects/one', { token, body: { framework: 'vue' } })
    const types = async (query: string) => {
      const { body } = await get(`/events?${query}&limit=100`)
      return [...new Set(body.events.map(({ type }: { type: string }) => type))].sort()
    }
    expect(await types('type=project.*')).toEqual(['project.created', 'project.updated'])
    expect(await types('type=project.updated,account.*')).toEqual(['account.created', 'project.updated'])
    for (const type of ['nothing.*', 'project', '*', 'pro*', 'project.*,x']) {
      const { status, body } = await get(`/events?type=${type}`)
      expect(status, type).toBe(422)
      expect(body.errors[0].pointer).toBe('#/type')
    }
    const { body: project } = await get('/projects/one')
    expect(
      (await ids(`/events?subject=${project.id},${accountId}&type=*.created`.replace('*', 'project'))).length,
    ).toBe(1)
  })
})

describe('since and until', () => {
  test('bound a list by its times, the first included and the second not', async () => {
    const made = [await newDeployment('one'), await newDeployment('one'), await newDeployment('one')]
    const { body } = await get(`/deployments/${made[1]}`)
    expect(timeOf(made[1]!).toISOString()).toBe(body.createdAt)
    const inside = await ids(`/deployments?since=${body.createdAt}&limit=100`)
    expect(inside).toContain(made[1])
    expect(inside).toContain(made[2])
    expect(await ids(`/deployments?until=${body.createdAt}&limit=100`)).not.toContain(made[1])
    expect(await ids(`/deployments?since=${body.createdAt}&until=${body.createdAt}`)).toEqual([])
    expect(await ids(`/deployments?since=${body.createdAt}&state=BUILDING&order=asc`)).toContain(made[2])
  })

  test('are exact for events, which are ordered by their times', async () => {
    const { body } = await get('/events?limit=100')
    const [newest, , , before] = body.events
    for (const { id, createdAt } of body.events) expect(timeOf(id).toISOString()).toBe(createdAt)
    for (const order of ['asc', 'desc']) {
      const since = await ids(`/events?since=${before.createdAt}&order=${order}&limit=100`)
      expect(since).toContain(before.id)
      expect(since).toContain(newest.id)
      expect(await ids(`/events?until=${before.createdAt}&order=${order}&limit=100`)).not.toContain(before.id)
    }
  })

  test.each(['2026-11-31T25:00:00Z', 'yesterday', '2026-11-14', '2026-11-14T00:00:00'])('refuses %s', async (time) => {
    for (const path of ['/events', '/deployments', '/tickets']) {
      const { status, body } = await get(`${path}?since=${time}`)
      expect(status).toBe(422)
      expect(body.errors).toMatchObject([{ in: 'query', pointer: '#/since', code: 'bad_format' }])
    }
  })

  test('are refused together, with what is wanted', async () => {
    const both = (since: string, until: string) => get(`/events?since=${since}&until=${until}`)
    const named = async (times: Promise<Answer>) =>
      (await times).body.errors.map(({ pointer, detail }: Record<string, string>) => [pointer, detail?.split(';')[0]])
    expect(await named(both('2026-11-31T25:00:00Z', '2026-99-30T00:00:00Z'))).toEqual([
      ['#/since', 'is not a valid time'],
      ['#/until', 'is not a valid time'],
    ])
    expect(await named(both('now', 'x'))).toEqual([
      ['#/since', 'must be a time such as 2027-01-31T12:00:00Z'],
      ['#/until', 'must be a time such as 2027-01-31T12:00:00Z'],
    ])
  })

  test('take every time that there is', async () => {
    for (const time of ['0000-01-01T00:00:00Z', '1969-12-31T23:59:59Z', '9999-12-31T23:59:59.999-14:00']) {
      for (const path of ['/events', '/events?order=asc', '/deployments', '/deployments?state=READY', '/tickets']) {
        const mark = path.includes('?') ? '&' : '?'
        const at = encodeURIComponent(time)
        expect((await get(`${path}${mark}since=${at}`)).status).toBe(200)
        expect((await get(`${path}${mark}until=${at}`)).status).toBe(200)
      }
    }
  })
})

test('deployments are found by commit, whole or by its beginning, with every other filter', async () => {
  const commit = 'abcdef0123456789abcdef0123456789abcdef01'
  const [one, two] = [await newDeployment('one', { commit }), await newDeployment('two', { commit, state: 'READY' })]
  const other = await newDeployment('two', { commit: 'abcdef0999'.padEnd(40, '0'), ref: 'side' })
  expect(await ids(`/deployments?commit=${commit}`)).toEqual([two, one])
  expect(await ids('/deployments?commit=ABCDEF0')).toEqual([other, two, one])
  expect(await ids('/deployments?commit=abcdef01&state=READY')).toEqual([two])
  expect(await ids('/deployments?commit=abcdef0&project=two')).toEqual([other, two])
  expect(await ids('/deployments?commit=abcdef0&ref=side')).toEqual([other])
  expect(await ids('/deployments?commit=abcdef0&limit=1&order=asc')).toEqual([one])
  const narrowed = await api.call('POST', '/tokens', { token, body: { name: 'n', projects: ['one'] } })
  const seen = await api.call('GET', '/deployments?commit=abcdef0', { token: narrowed.body.token })
  expect(seen.body.deployments.map(({ id }: { id: string }) => id)).toEqual([one])
  expect((await api.call('GET', `/deployments?commit=${commit}`)).body.deployments).toEqual([])
  for (const bad of ['abc', 'zzzzzzz', '%25%25%25%25%25%25%25']) {
    expect((await get(`/deployments?commit=${bad}`)).status).toBe(422)
  }
})

test('domains are found by a part of their name, taken literally', async () => {
  for (const name of ['shop.words.io', 'my-shop.words.io', 'blog.words.io']) {
    await api.call('POST', '/domains', { token, body: { project: 'one', name } })
  }
  const names = async (search: string) =>
    (await get(`/domains?search=${search}`)).body.domains.map(({ name }: { name: string }) => name)
  expect(await names('SHOP')).toEqual(['my-shop.words.io', 'shop.words.io'])
  for (const nothing of ['%25', '_', 'shopping']) expect(await names(nothing)).toEqual([])
  expect((await api.call('GET', '/domains?search=words')).body.domains).toEqual([])
})

test('tickets are found by the words of their subject, and of their own account alone', async () => {
  const open = async (subject: string, as = token) =>
    (await api.call('POST', '/tickets', { token: as, body: { subject, message: 'x', priority: 'high' } })).body.id
  const first = await open('The build cannot find my Lockfile')
  const second = await open('Größe der Lockfiles, and “it’s” too long')
  await open('lockfile', api.token)
  const search = (text: string) => ids(`/tickets?search=${encodeURIComponent(text)}`)
  expect(await search('lockfile')).toEqual([second, first])
  expect(await search('LOCK build')).toEqual([first])
  expect(await search('größe')).toEqual([second])
  expect(await search('it’s')).toEqual([second])
  for (const nothing of ['file', 'build size', '-', '%', accountId, `' | '`, ':*', '!lock & x']) {
    expect(await search(nothing), nothing).toEqual([])
  }
  expect(await ids('/tickets?search=lockfile&priority=low,high&limit=1')).toEqual([second])
  expect(await ids('/tickets?search=lockfile&status=CLOSED')).toEqual([])
  // Beyond those that are looked through one by one.
  const rows = Array.from({ length: 250 }, () => newId('tkt')).map((id) => {
    const now = timeOf(id)
    return { id, accountId, subject: 'Noise', status: 'OPEN', priority: 'low', createdAt: now, updatedAt: now }
  })
  await api.db.ticket.createMany({ data: rows })
  expect(await search('lockfile')).toEqual([second, first])
  expect(await ids('/tickets?search=lockfile&order=asc&limit=1')).toEqual([first])
  const page = await get('/tickets?search=noise&limit=100')
  expect(page.body).toMatchObject({ hasMore: true })
  expect(await ids(`/tickets?search=noise&limit=100&cursor=${page.body.nextCursor}`)).toHaveLength(100)
})

describe('a cursor that is kept', () => {
  test('comes with the last page too, and finds what is added later', async () => {
    const { token } = await api.newAccount()
    const list = (query: string) => api.call('GET', `/projects?${query}`, { token })
    expect((await list('')).body).toEqual({ projects: [], hasMore: false, nextCursor: null, latestCursor: null })
    await api.newProject('a', { token })
    const { body, headers } = await list('limit=1')
    expect(body).toMatchObject({ hasMore: false, nextCursor: null, latestCursor: expect.any(String) })
    expect(headers.link).toBeUndefined()
    const empty = await list(`cursor=${body.latestCursor}`)
    expect(empty.body).toEqual({ projects: [], hasMore: false, nextCursor: null, latestCursor: body.latestCursor })
    await api.newProject('b', { token })
    expect((await list(`cursor=${empty.body.latestCursor}`)).body.projects).toMatchObject([{ name: 'b' }])
  })

  const polls = async (cursor: string, query = '') => {
    const seen: string[] = []
    for (let next = cursor; ; ) {
      const { status, body, text } = await get(`/events?order=asc&limit=2${query}${next && `&cursor=${next}`}`)
      if (status !== 200) throw new Error(text)
      seen.push(...body.events.map(({ id }: { id: string }) => id))
      next = body.latestCursor
      if (!body.hasMore) return { seen, cursor: next }
    }
  }

  test('shows each event once, also one whose transaction ends after later ones were shown', async () => {
    const begun = await polls('')
    expect(begun.seen).toEqual(await ids('/events?order=asc&limit=100'))
    const insert = `INSERT INTO event (id, account_id, type, actor, subject, data, created_at)
      VALUES ($1, $2, 'account.limits_changed', 'x', $2, $3, now())`
    const data = JSON.stringify({ id: accountId, name: 'x' })
    const slow = new pg.Client({ connectionString: api.databaseUrl })
    await slow.connect()
    await slow.query('BEGIN')
    const [late, later] = [newId('evt'), newId('evt')]
    await slow.query(insert, [late, accountId, data])
    await api.call('PATCH', '/projects/one', { token, body: { framework: 'hugo' } })
    const during = await polls(begun.cursor)
    // What is committed is shown at once, although an older transaction runs.
    expect(during.seen).toHaveLength(1)
    expect((await polls(during.cursor)).seen).toEqual([])
    await slow.query('COMMIT')
    // Another id that was made before those that were shown, by a transaction that began after.
    await slow.query(insert, [later, accountId, data])
    await slow.end()
    const after = await polls(during.cursor)
    expect(after.seen).toEqual([late, later])
    expect((await polls(after.cursor)).seen).toEqual([])
    expect((await polls(begun.cursor, '&type=account.*')).seen).toEqual([late, later])
  })

  test('shows each of many events once that are written while it is read', async () => {
    let { cursor } = await polls('', '&type=project.*')
    const seen: string[] = []
    const writes = Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        api.call('PATCH', `/projects/${index % 2 ? 'one' : 'two'}`, { token, body: { framework: 'astro' } }),
      ),
    )
    let done = false
    void writes.finally(() => {
      done = true
    })
    while (!done) {
      const next = await polls(cursor, '&type=project.*')
      seen.push(...next.seen)
      cursor = next.cursor
    }
    seen.push(...(await polls(cursor, '&type=project.*')).seen)
    expect(seen).toHaveLength(8)
    expect(new Set(seen).size).toBe(8)
  })

  test('of events that is made up is refused, or shows nobody else’s', async () => {
    const made = (...keys: string[]) => Buffer.from(JSON.stringify(['events', 'asc', ...keys])).toString('base64url')
    const bad = [
      ['x', 'x', 'x', 'x'],
      ['', '-1', '', ''],
      ['', '1 x', '', ''],
      ['', '9'.repeat(19), '', ''],
      ['', '', '1  2', ''],
      ['', '', ' ', ''],
      ['x'],
    ]
    for (const keys of bad) {
      const { status, body } = await get(`/events?order=asc&cursor=${made(...keys)}`)
      expect([status, body.code], String(keys)).toEqual([400, 'invalid_cursor'])
    }
    const everything = made('', '', '9'.repeat(18), '')
    const { body } = await api.call('GET', `/events?order=asc&limit=100&cursor=${everything}`)
    expect(body.events.every(({ subject }: { subject: string }) => subject !== accountId)).toBe(true)
  })
})
