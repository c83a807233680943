import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { type Answer, type CallOptions, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let operator: { token: string; accountId: string }
// biome-ignore lint/suspicious/noExplicitAny: a project as the API shows it.
let project: any
beforeAll(async () => {
  api = await sharedApi()
  const made = await createAccount(api.db, 'the desk', ['operator'])
  operator = { token: made.token, accountId: made.account.id }
  project = await api.newProject('site')
})
afterAll(() => api.stop())

const desk = (method: string, path: string, options: CallOptions = {}) =>
  api.call(method, `/operator/takedowns${path}`, { token: operator.token, ...options })
const takeDown = (body: object, options: CallOptions = {}) =>
  desk('POST', '', { body: { reason: 'phishing', ...body }, ...options })
const events = async (subject: string) => (await api.call('GET', `/events?subject=${subject}&order=asc`)).body.events

let domains = 0
async function newDomain(name = `d${++domains}.example.test`, verified = true): Promise<string> {
  expect((await api.call('POST', '/domains', { body: { project: 'site', name } })).status).toBe(201)
  const { id } = await api.db.domain.findFirstOrThrow({ orderBy: { id: 'desc' } })
  if (verified) await markVerified(api.db, api.config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
  return name
}

async function newDeployment(state: 'READY' | 'CANCELED' = 'READY'): Promise<{ id: string; host: string }> {
  const { body } = await api.call('POST', '/deployments', { body: { project: 'site' } })
  await finishDeployment(api.db, api.deps.urls, body.id, { to: state, by: 'system' })
  return { id: body.id, host: new URL(body.url).hostname }
}

describe('a takedown', () => {
  test('of a host is made, read, listed and ended, and its owner reads of it', async () => {
    const host = await newDomain()
    const { status, headers, body } = await takeDown({ host })
    expect(status).toBe(201)
    expect(headers.location).toBe(`/api/operator/takedowns/${body.id}`)
    expect(body).toEqual({
      id: expect.stringMatching(/^tkd_/),
      host,
      project: project.id,
      hosts: [host],
      reason: 'phishing',
      createdAt: expect.any(String),
      endedAt: null,
      account: { id: api.accountId, name: expect.any(String) },
    })
    expect((await desk('GET', `/${body.id}`)).body).toEqual(body)
    const notice = { reason: 'phishing', createdAt: body.createdAt }
    const shown = await api.call('GET', `/domains/${host}`)
    expect(Object.entries(shown.body).at(-1)).toEqual(['takedown', notice])
    expect((await api.call('GET', '/projects/site')).body.takedown).toBeNull()
    expect((await desk('DELETE', `/${body.id}`)).status).toBe(204)
    const ended = { ...body, endedAt: expect.any(String) }
    expect((await desk('GET', `/${body.id}`)).body).toEqual(ended)
    expect((await api.call('GET', `/domains/${host}`)).body.takedown).toBeNull()
    const { account: _account, ...told } = body
    expect(await events(body.id)).toMatchObject([
      { type: 'takedown.created', actor: expect.stringMatching(/^tok_/), data: told },
      { type: 'takedown.ended', data: { ...told, endedAt: expect.any(String) } },
    ])
  })

  test('of a project keeps the names that it had, and is shown by the project and its domains', async () => {
    const made = await api.newProject('whole')
    await api.call('POST', '/domains', { body: { project: 'whole', name: 'whole.example.test' } })
    const { id } = await api.db.domain.findFirstOrThrow({ where: { name: 'whole.example.test' } })
    await markVerified(api.db, api.config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
    const { body } = await takeDown({ project: made.id })
    expect(body).toMatchObject({ host: null, project: made.id, hosts: ['whole.localhost', 'whole.example.test'] })
    for (const path of ['/projects/whole', '/domains/whole.example.test']) {
      expect((await api.call('GET', path)).body.takedown.reason).toBe('phishing')
    }
    // A new domain of it, and one that is asked about, are told of at once.
    const attach = { body: { project: 'whole', name: 'more.example.test' } }
    for (const answer of [
      await api.call('POST', '/domains', attach),
      await api.call('POST', '/domains/more.example.test/verify'),
    ]) {
      expect(answer.body.takedown, answer.text).toMatchObject({ reason: 'phishing' })
    }
    await desk('DELETE', `/${body.id}`)
  })

  test('does not stand in the way of conditional changes by the owner', async () => {
    const { id } = (await takeDown({ project: project.id })).body
    const read = await api.call('GET', '/projects/site')
    const change = (etag: string) =>
      api.call('PATCH', '/projects/site', {
        body: { settings: { cleanUrls: true } },
        headers: { 'if-match': etag },
      })
    const changed = await change(read.headers.etag!)
    expect([changed.status, changed.body.takedown.reason]).toEqual([200, 'phishing'])
    expect((await api.call('GET', '/projects/site')).headers.etag).toBe(changed.headers.etag)
    await desk('DELETE', `/${id}`)
    // The project is shown differently now.
    expect((await change(changed.headers.etag!)).status).toBe(412)
  })

  test.each([
    ['a production host', async () => 'site.localhost'],
    ['the host of a READY deployment', async () => (await newDeployment()).host],
    ['a verified domain', newDomain],
    ['the www of a verified domain', async () => `www.${await newDomain()}`],
    ['a host in other letters, with a last dot', async () => 'SITE.localhost.'],
    ['a domain in Unicode', () => newDomain('Bücher.example.test')],
  ])('may be of %s', async (_what, hostOf) => {
    const { status, body } = await takeDown({ host: await hostOf() })
    expect([status, body.project]).toEqual([201, project.id])
    expect(body.host).toMatch(/^[a-z0-9.-]+[a-z]$/)
    await desk('DELETE', `/${body.id}`)
  })

  test('may be of a name that only a wildcard serves, and of the wildcard', async () => {
    const zone = await newDomain()
    await newDomain(`*.${zone}`)
    for (const host of [`any.${zone}`, `*.${zone}`]) expect((await takeDown({ host })).status).toBe(201)
    // It stands for one label.
    expect((await takeDown({ host: `two.labels.${zone}` })).body.errors).toMatchObject([{ code: 'not_served' }])
  })

  test.each([
    ['a name that nobody attached', async () => 'nobody.example.test', 'not_served'],
    ['a domain that is not verified', () => newDomain('unproved.example.test', false), 'not_served'],
    ['a label that nobody has', async () => 'nobody.localhost', 'not_served'],
    ['a deployment that is not READY', async () => (await newDeployment('CANCELED')).host, 'not_served'],
    ['the platform’s own domain', async () => 'localhost', 'not_served'],
    ['the API', async () => 'api.localhost', 'not_served'],
    ['an address', async () => '127.0.0.1', 'ip_address'],
    ['a URL', async () => 'https://site.localhost/', 'bad_format'],
    ['a host with a port', async () => 'site.localhost:8080', 'bad_format'],
  ])('is refused for %s', async (_what, hostOf, code) => {
    const { status, body } = await takeDown({ host: await hostOf() })
    expect([status, body.errors]).toMatchObject([422, [{ pointer: '#/host', code }]])
  })

  test.each([
    ['neither host nor project', {}, '#/host required'],
    ['both', { host: 'site.localhost', project: 'prj_000000000000000000000000' }, '#/project not_allowed'],
    ['a project that does not exist', { project: 'prj_000000000000000000000000' }, '#/project not_found'],
    ['the name of a project', { project: 'site' }, '#/project bad_format'],
    ['no reason', { host: 'site.localhost', reason: undefined }, '#/reason required'],
    ['an empty reason', { host: 'site.localhost', reason: '' }, '#/reason too_short'],
    ['a long reason', { host: 'site.localhost', reason: 'r'.repeat(501) }, '#/reason too_long'],
    ['an unknown field', { host: 'site.localhost', until: 'tomorrow' }, '#/until unknown_field'],
  ])('is refused with %s', async (_what, fields, expected) => {
    const { status, body } = await takeDown(fields)
    expect(status).toBe(422)
    const errors = body.errors as { pointer: string; code: string }[]
    expect(errors.map((error) => `${error.pointer} ${error.code}`)).toContain(expected)
  })

  test('is one however often and however many at once ask for it; the first reason stays', async () => {
    const host = await newDomain()
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => takeDown({ host, reason: `reason ${n}` })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    const { id } = answers[0]!.body
    const again = await takeDown({ host, reason: 'another' }, { headers: { 'idempotency-key': 'again' } })
    expect(again.body).toEqual(answers[0]!.body)
    expect(await events(id)).toHaveLength(1)
    const ends = await Promise.all(Array.from({ length: 8 }, () => desk('DELETE', `/${id}`)))
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set([204]))
    expect((await events(id)).map(({ type }: { type: string }) => type)).toEqual(['takedown.created', 'takedown.ended'])
    const next = await takeDown({ host })
    expect(next.body.id).not.toBe(id)
  })

  test('that is not there is 404', async () => {
    for (const method of ['GET', 'DELETE']) {
      const answer = await desk(method, '/tkd_000000000000000000000000')
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found'])
    }
  })

  test('ends only as it was read, if the operator says so', async () => {
    const { body } = await takeDown({ host: await newDomain() })
    const { headers } = await desk('GET', `/${body.id}`)
    const end = (etag: string) => desk('DELETE', `/${body.id}`, { headers: { 'if-match': etag } })
    expect((await end('"other"')).status).toBe(412)
    expect((await end(headers.etag!)).status).toBe(204)
  })
})

describe('the list of takedowns', () => {
  const ids = ({ body }: Answer) => body.takedowns.map(({ id }: { id: string }) => id) as string[]

  test('is newest first, page by page, and of those that stand or have ended', async () => {
    const made: string[] = []
    for (let n = 0; n < 3; n++) made.unshift((await takeDown({ host: await newDomain() })).body.id)
    await desk('DELETE', `/${made[1]}`)
    const first = await desk('GET', '?limit=2')
    expect(ids(first)).toEqual(made.slice(0, 2))
    const next = await desk('GET', `?limit=2&cursor=${first.body.nextCursor}`)
    expect(ids(next)[0]).toBe(made[2])
    const standing = ids(await desk('GET', '?ended=false&limit=100'))
    const ended = ids(await desk('GET', '?ended=true&limit=100'))
    expect([standing.includes(made[1]!), ended.includes(made[1]!)]).toEqual([false, true])
    expect(standing).toEqual(expect.arrayContaining([made[0], made[2]]))
    expect(ended.length + standing.length).toBe(await api.db.takedown.count())
  })
})

describe('what becomes of a takedown', () => {
  test('when its deployment is deleted: it ends, because the host is never given out again', async () => {
    const { id: deployment, host } = await newDeployment()
    const { id } = (await takeDown({ host })).body
    expect((await api.call('DELETE', `/deployments/${deployment}`)).status).toBe(204)
    expect((await desk('GET', `/${id}`)).body.endedAt).not.toBeNull()
    expect((await events(id)).at(-1)).toMatchObject({ type: 'takedown.ended', data: { host } })
  })

  test('when its domain or project is deleted: it stands, and the next owner of the name reads of it', async () => {
    const host = await newDomain()
    const { id } = (await takeDown({ host })).body
    expect((await api.call('DELETE', `/domains/${host}`)).status).toBe(204)
    expect((await desk('GET', `/${id}`)).body.endedAt).toBeNull()
    await newDomain(host, false)
    expect((await api.call('GET', `/domains/${host}`)).body.takedown.reason).toBe('phishing')
    const gone = await api.newProject('gone')
    const whole = (await takeDown({ project: gone.id })).body
    expect((await api.call('DELETE', '/projects/gone')).status).toBe(204)
    expect((await desk('GET', `/${whole.id}`)).body.endedAt).toBeNull()
    await api.call('POST', '/projects', { body: { name: 'gone', repo: 'test/gone' } })
    expect((await api.call('GET', '/projects/gone')).body.takedown.reason).toBe('phishing')
    await desk('DELETE', `/${whole.id}`)
    expect((await api.call('GET', '/projects/gone')).body.takedown).toBeNull()
  })
})
