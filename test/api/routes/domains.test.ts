import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { changeSsl, markUnverified, markVerified, recordCheck } from '../../../src/services/domains/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await newProject('site', api.token)
  await newProject('other', api.token)
})
afterAll(() => api.stop())

const nothing = { nameservers: [], txt: [] }

const attach = (name: string, options: { project?: string; token?: string; headers?: Record<string, string> } = {}) => {
  const { project = 'site', ...rest } = options
  return api.call('POST', '/domains', { body: { project, name }, ...rest })
}

const idOf = async (name: string, accountId = api.accountId) =>
  (await api.db.domain.findFirstOrThrow({ where: { name, accountId } })).id

const eventsOf = (subject: string, accountId = api.accountId) =>
  api.db.event.findMany({ where: { subject, accountId }, orderBy: { seq: 'asc' } })

const newProject = (name: string, token: string) =>
  api.call('POST', '/projects', { body: { name, repo: `acme/${name}` }, token })

async function newOwner(): Promise<{ accountId: string; token: string }> {
  const owner = await api.newAccount()
  await newProject('site', owner.token)
  return owner
}

async function verify(name: string, accountId = api.accountId) {
  return markVerified(api.db, api.config, await idOf(name, accountId), { method: 'txt', observed: nothing })
}

describe('attaching', () => {
  test('a new domain has the planned fields first, in order, and starts unverified and PENDING', async () => {
    const { status, headers, body } = await attach('example.com')
    expect(status).toBe(201)
    expect(headers.location).toBe('/api/domains/example.com')
    expect(Object.keys(body)).toEqual([
      'name',
      'project',
      'verified',
      'ssl',
      'nameservers',
      'createdAt',
      'verification',
      'certificate',
      'verifiedAt',
      'redirectTo',
      'redirectStatus',
      'takedown',
    ])
    expect(body).toMatchObject({
      name: 'example.com',
      project: 'site',
      verified: false,
      ssl: 'PENDING',
      nameservers: ['ns1.berth.test', 'ns2.berth.test'],
      verification: {
        method: null,
        txt: { name: '_berth.example.com', value: expect.stringMatching(/^berth-verify=[0-9a-z]{26}$/) },
        checkedAt: null,
        nextCheckAt: body.createdAt,
        observed: { ...nothing, asked: [] },
        reason: null,
      },
      certificate: null,
      verifiedAt: null,
    })
    const [event] = await eventsOf('example.com')
    const { takedown: _none, ...told } = body
    expect(event).toMatchObject({ type: 'domain.created', data: told })
    expect(event!.projectId).not.toBeNull()
    const jobs = await api.db.job.findMany({ where: { kind: 'verify', key: await idOf('example.com') } })
    expect(jobs).toHaveLength(1)
  })

  test.each([
    ['Shop.EXAMPLE.org', 'shop.example.org'],
    ['trailing.example.org.', 'trailing.example.org'],
    ['Bücher.example.org', 'xn--bcher-kva.example.org'],
    ['日本。jp', 'xn--wgv71a.jp'],
    ['me.github.io', 'me.github.io'],
    ['tour.test', 'tour.test'],
  ])('%s is attached as %s', async (given, stored) => {
    const { status, body } = await attach(given)
    expect(status).toBe(201)
    expect(body.name).toBe(stored)
    const read = await api.call('GET', `/domains/${encodeURIComponent(given)}`)
    expect(read.body.name).toBe(stored)
  })

  test.each([
    ['com', 'public_suffix'],
    ['co.uk', 'public_suffix'],
    ['github.io', 'public_suffix'],
    ['*.co.uk', 'public_suffix'],
    ['localhost', 'platform_name'],
    ['mysite.localhost', 'platform_name'],
    ['ns1.berth.test', 'platform_name'],
    ['berth.test', 'platform_name'],
    ['shop.example', 'reserved_name'],
    ['shop.invalid', 'reserved_name'],
    ['printer.local', 'reserved_name'],
    ['192.0.2.1', 'ip_address'],
    ['0x7f.1', 'ip_address'],
    ['2001:db8::1', 'ip_address'],
    ['[::1]', 'ip_address'],
    ['a..example.com', 'bad_format'],
    ['.example.com', 'bad_format'],
    ['-a.example.com', 'bad_format'],
    ['a-.example.com', 'bad_format'],
    ['a_b.example.com', 'bad_format'],
    ['a b.example.com', 'bad_format'],
    ['a/b.example.com', 'bad_format'],
    ['ex\\097mple.com', 'bad_format'],
    ['www.*.example.com', 'bad_format'],
    ['*', 'bad_format'],
    ['https://example.com', 'bad_format'],
    ['xn--a.example.com', 'bad_format'],
    [`${'a'.repeat(64)}.example.com`, 'bad_format'],
    [`${'a.'.repeat(122)}example.com`, 'too_long'],
  ])('%s is refused at #/name as %s', async (name, code) => {
    const { status, body } = await attach(name)
    expect(status).toBe(422)
    expect(body.errors).toMatchObject([{ in: 'body', pointer: '#/name', code }])
  })

  test('a name of 253 characters is attached and one of 254 is refused', async () => {
    const long = `${'a.'.repeat(121)}example.com`
    expect(long).toHaveLength(253)
    expect((await attach(long)).status).toBe(201)
    expect((await attach(`a${long}`)).body.errors).toMatchObject([{ pointer: '#/name' }])
  })

  test('production refuses the names that only development can use, and edge names wherever the edge is', async () => {
    const { nameToAttach } = await import('../../../src/services/names/index.ts')
    const edge = { ...api.config.edge, domain: 'berth.app' }
    const production = { ...api.config, production: true, edge, baseUrl: 'https://api.berth.dev' }
    for (const name of [
      'a.test',
      'a.localhost',
      'a.internal',
      'x.berth.app',
      'berth.app',
      'api.berth.dev',
      'berth.dev',
    ])
      expect(() => nameToAttach(production, name)).toThrow()
    expect(nameToAttach(production, 'shop.berth.dev')).toBe('shop.berth.dev')
    expect(nameToAttach({ ...production, production: false }, 'a.localhost')).toBe('a.localhost')
  })

  test('an unknown project is 404 and an unknown field is named', async () => {
    expect((await attach('a.example.net', { project: 'nope' })).status).toBe(404)
    const { body } = await api.call('POST', '/domains', { body: { project: 'site', name: 'b.example.net', ssl: 'x' } })
    expect(body.errors).toMatchObject([{ pointer: '#/ssl', code: 'unknown_field' }])
  })

  test('a wildcard needs its domain in the same account, and its TXT record is at the parent', async () => {
    const refused = await attach('*.wild.example.net')
    expect(refused.body.errors).toMatchObject([{ pointer: '#/name', code: 'zone_not_here' }])
    await attach('wild.example.net')
    const { status, headers, body } = await attach('*.WILD.example.net')
    expect(status).toBe(201)
    expect(headers.location).toBe('/api/domains/*.wild.example.net')
    expect(body.verification.txt.name).toBe('_berth.wild.example.net')
    expect((await api.call('GET', '/domains/*.wild.example.net')).status).toBe(200)
    expect((await api.call('GET', '/dns/*.wild.example.net/records')).status).toBe(404)
    const kept = await api.call('DELETE', '/domains/wild.example.net')
    expect(kept).toMatchObject({ status: 409, body: { code: 'domain_has_wildcard' } })
    expect((await api.call('DELETE', '/domains/*.wild.example.net')).status).toBe(204)
    expect((await api.call('DELETE', '/domains/wild.example.net')).status).toBe(204)
  })
})

describe('whose name it is', () => {
  test('the same name twice in one account is domain_exists', async () => {
    await attach('twice.example.net')
    expect(await attach('TWICE.example.net')).toMatchObject({ status: 409, body: { code: 'domain_exists' } })
  })

  test('concurrent claims of one name by one account make one 201, the others 409, with and without a key', async () => {
    for (let round = 0; round < 10; round++) {
      const name = `race${round}.example.net`
      const answers = await Promise.all(
        [0, 1, 2, 3].map((n) => attach(name, n < 2 ? {} : { headers: { 'idempotency-key': `${name}-${n}` } })),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
      expect(await eventsOf(name)).toHaveLength(1)
    }
  })

  test('an unverified name may be claimed by two accounts, a verified one and all below it by one', async () => {
    const owner = await newOwner()
    expect((await attach('claimed.example.net', { token: owner.token })).status).toBe(201)
    expect((await attach('claimed.example.net')).status).toBe(201)
    await api.call('DELETE', '/domains/claimed.example.net')
    await verify('claimed.example.net', owner.accountId)
    for (const name of ['claimed.example.net', 'www.claimed.example.net', 'a.b.claimed.example.net']) {
      expect(await attach(name)).toMatchObject({ status: 409, body: { code: 'domain_taken' } })
    }
    expect((await attach('www.claimed.example.net', { token: owner.token })).status).toBe(201)
  })

  test('a verified name that was deleted is held for its account for 7 days, an unverified one is not', async () => {
    const owner = await newOwner()
    await attach('held.example.net', { token: owner.token })
    await verify('held.example.net', owner.accountId)
    expect((await api.call('DELETE', '/domains/held.example.net', { token: owner.token })).status).toBe(204)
    expect(await attach('held.example.net')).toMatchObject({ status: 409, body: { code: 'domain_taken' } })
    expect(await attach('sub.held.example.net')).toMatchObject({ status: 409 })
    expect((await attach('held.example.net', { token: owner.token })).status).toBe(201)
    const { until } = await api.db.domainHold.findUniqueOrThrow({ where: { name: 'held.example.net' } })
    expect(Math.round((until.getTime() - Date.now()) / 86_400_000)).toBe(7)
    await api.db.domainHold.update({ where: { name: 'held.example.net' }, data: { until: new Date() } })
    expect((await attach('held.example.net')).status).toBe(201)

    await attach('loose.example.net', { token: owner.token })
    await api.call('DELETE', '/domains/loose.example.net', { token: owner.token })
    expect((await attach('loose.example.net')).status).toBe(201)
  })

  test('a domain of another account, or outside the projects of the token, looks absent', async () => {
    await attach('mine.example.net')
    const stranger = await newOwner()
    const narrow = await api.call('POST', '/tokens', { body: { name: 'n', scopes: ['*'], projects: ['other'] } })
    for (const token of [stranger.token, narrow.body.token ?? narrow.body.secret]) {
      expect((await api.call('GET', '/domains/mine.example.net', { token })).status).toBe(404)
      expect((await api.call('POST', '/domains/mine.example.net/verify', { token })).status).toBe(404)
      expect((await api.call('DELETE', '/domains/mine.example.net', { token })).status).toBe(404)
      expect((await api.call('GET', '/domains', { token })).body.domains).toEqual([])
    }
    expect((await attach('x.example.net', { token: narrow.body.token ?? narrow.body.secret })).status).toBe(404)
  })

  test('a token attaches no name below a domain of a project that it does not see: that would be verified by itself', async () => {
    await attach('whole.example.net')
    await api.call('POST', '/projects', { body: { name: 'apart', repo: 'test/site' } })
    const { token } = (await api.call('POST', '/tokens', { body: { name: 'n', scopes: ['*'], projects: ['apart'] } }))
      .body
    for (const name of ['login.whole.example.net', 'a.b.whole.example.net', '*.whole.example.net']) {
      const refused = await attach(name, { token, project: 'apart' })
      expect(refused).toMatchObject({ status: 409, body: { code: 'domain_taken' } })
      expect((await attach(name, { project: 'apart' })).status).toBe(201)
    }
    expect((await attach('own.example.net', { token, project: 'apart' })).status).toBe(201)
    expect((await attach('login.own.example.net', { token, project: 'apart' })).status).toBe(201)
  })
})

describe('reading', () => {
  test('lists are newest first, paged, and filtered by project, verified and ssl', async () => {
    const reader = await newOwner()
    const { token } = reader
    await newProject('second', token)
    for (const name of ['l1.example.io', 'l2.example.io', 'l3.example.io']) await attach(name, { token })
    await attach('l4.example.io', { token, project: 'second' })
    await verify('l2.example.io', reader.accountId)
    await changeSsl(api.db, api.config, await idOf('l2.example.io', reader.accountId), { to: 'ISSUING' })
    const names = async (query: string) =>
      (await api.call('GET', `/domains${query}`, { token })).body.domains.map((d: { name: string }) => d.name[1])
    expect(await names('')).toEqual(['4', '3', '2', '1'])
    expect(await names('?order=asc')).toEqual(['1', '2', '3', '4'])
    expect(await names('?project=second')).toEqual(['4'])
    expect(await names('?verified=true')).toEqual(['2'])
    expect(await names('?verified=false&project=site')).toEqual(['3', '1'])
    expect(await names('?ssl=ISSUING')).toEqual(['2'])
    const first = await api.call('GET', '/domains?limit=3', { token })
    const second = await api.call('GET', `/domains?limit=3&cursor=${first.body.nextCursor}`, { token })
    expect(second.body).toMatchObject({ domains: [{ name: 'l1.example.io' }], hasMore: false })
  })

  test('an ETag answers 304 to a reader that has it and 412 to a deletion that has an old one', async () => {
    await attach('etag.example.net')
    const { headers } = await api.call('GET', '/domains/etag.example.net')
    const again = await api.call('GET', '/domains/etag.example.net', { headers: { 'if-none-match': headers.etag! } })
    expect(again.status).toBe(304)
    await verify('etag.example.net')
    const old = await api.call('DELETE', '/domains/etag.example.net', { headers: { 'if-match': headers.etag! } })
    expect(old.status).toBe(412)
  })

  test('wait holds the answer until the domain is verified and its certificate is there', async () => {
    await attach('wait.example.net')
    const id = await idOf('wait.example.net')
    const waiting = api.call('GET', '/domains/WAIT.example.net?wait=10')
    await verify('wait.example.net')
    await changeSsl(api.db, api.config, id, { to: 'ISSUING' })
    await changeSsl(api.db, api.config, id, { to: 'ACTIVE' })
    expect((await waiting).body).toMatchObject({ verified: true, ssl: 'ACTIVE' })
  })

  test('verify queues one check, however often it is asked for', async () => {
    await attach('again.example.net')
    const { status, body } = await api.call('POST', '/domains/again.example.net/verify')
    expect(status).toBe(202)
    expect(body.name).toBe('again.example.net')
    await api.call('POST', '/domains/again.example.net/verify')
    const key = await idOf('again.example.net')
    expect(await api.db.job.count({ where: { kind: 'verify', key } })).toBe(1)
    expect((await api.call('POST', '/domains/absent.example.net/verify')).status).toBe(404)
  })

  test('deleting takes the records along and writes one event', async () => {
    await attach('gone.example.net')
    const id = await idOf('gone.example.net')
    await api.call('POST', '/dns/gone.example.net/records', { body: { type: 'A', name: '@', value: '192.0.2.1' } })
    expect((await api.call('DELETE', '/domains/gone.example.net')).status).toBe(204)
    expect(await api.db.dnsRecord.count({ where: { domainId: id } })).toBe(0)
    expect((await eventsOf('gone.example.net')).map(({ type }) => type)).toEqual(['domain.created', 'domain.deleted'])
    expect((await api.call('GET', '/domains/gone.example.net')).status).toBe(404)
  })
})

describe('states', () => {
  test('ownership is proved once, with an event and a job for the certificate', async () => {
    await attach('proof.example.net')
    const id = await idOf('proof.example.net')
    const observed = { nameservers: ['ns1.berth.test'], txt: ['berth-verify=x'] }
    const view = await markVerified(api.db, api.config, id, { method: 'nameservers', observed })
    expect(view).toMatchObject({ verified: true, verification: { method: 'nameservers', observed, reason: null } })
    expect(await markVerified(api.db, api.config, id, { method: 'txt', observed })).toBeNull()
    expect(await markVerified(api.db, api.config, 'dom_absent', { method: 'txt', observed })).toBeNull()
    expect((await eventsOf('proof.example.net')).map(({ type }) => type)).toEqual(['domain.created', 'domain.verified'])
    expect(await api.db.job.count({ where: { kind: 'issue', key: id } })).toBe(1)
    expect((await api.call('GET', '/domains/proof.example.net')).body).toEqual({ ...(view as object), takedown: null })
  })

  test('two accounts that prove one name at once make one winner; the other is told once', async () => {
    for (let round = 0; round < 10; round++) {
      const name = `duel${round}.example.net`
      const rival = await newOwner()
      await attach(name)
      await attach(name, { token: rival.token })
      const outcomes = await Promise.all([verify(name), verify(name, rival.accountId)])
      expect(outcomes.filter((outcome) => outcome === 'taken')).toHaveLength(1)
      expect(outcomes.filter((outcome) => outcome !== 'taken' && outcome?.verified)).toHaveLength(1)
      const loser = outcomes[0] === 'taken' ? api.accountId : rival.accountId
      expect(await verify(name, loser)).toBe('taken')
      expect((await eventsOf(name, loser)).map(({ type }) => type)).toEqual(['domain.created', 'domain.unverified'])
    }
  })

  test('a claim older than a hold cannot take the name over while it lasts', async () => {
    const owner = await newOwner()
    await attach('patient.example.net')
    await attach('patient.example.net', { token: owner.token })
    await verify('patient.example.net', owner.accountId)
    await api.call('DELETE', '/domains/patient.example.net', { token: owner.token })
    expect(await verify('patient.example.net')).toBe('taken')
  })

  test('ownership is lost after three misses in a row and not before', async () => {
    await attach('lost.example.net')
    const id = await idOf('lost.example.net')
    await verify('lost.example.net')
    const check = async (outcome: 'missed' | 'unknown') =>
      (await recordCheck(api.db, id, { outcome, observed: nothing, reason: 'no answer', nextCheckAt: new Date() }))!
    const miss = async () => {
      // A day later.
      await api.db.domain.updateMany({
        where: { id, missedAt: { not: null } },
        data: { missedAt: new Date(Date.now() - 86_400_000) },
      })
      return check('missed')
    }
    const lose = () => markUnverified(api.db, api.config, id, { observed: nothing, reason: 'no answer' })
    expect(await miss()).toEqual({ verified: true, misses: 1 })
    expect(await miss()).toEqual({ verified: true, misses: 2 })
    expect(await check('missed')).toEqual({ verified: true, misses: 2 })
    expect(await check('unknown')).toEqual({ verified: true, misses: 2 })
    expect(await lose()).toBeNull()
    const proof = { outcome: 'proved', method: 'txt', observed: nothing, nextCheckAt: new Date() } as const
    expect(await recordCheck(api.db, id, proof)).toEqual({ verified: true, misses: 0 })
    for (let n = 1; n <= 3; n++) expect(await miss()).toEqual({ verified: true, misses: n })
    expect(await lose()).toMatchObject({ verified: false, verifiedAt: null, verification: { reason: 'no answer' } })
    expect((await eventsOf('lost.example.net')).at(-1)).toMatchObject({ type: 'domain.unverified' })
    expect(await verify('lost.example.net')).toMatchObject({ verified: true })
  })

  test('ssl follows its table and nothing else, with an event where someone waits for it', async () => {
    await attach('ssl.example.net')
    const id = await idOf('ssl.example.net')
    const to = async (state: 'PENDING' | 'ISSUING' | 'ACTIVE' | 'ERROR' | 'EXPIRED') =>
      (await changeSsl(api.db, api.config, id, { to: state }))?.ssl ?? null
    for (const state of ['PENDING', 'ACTIVE', 'ERROR', 'EXPIRED'] as const) expect(await to(state)).toBeNull()
    const path = ['ISSUING', 'ERROR', 'ISSUING', 'ACTIVE', 'ACTIVE', 'EXPIRED', 'ISSUING', 'ACTIVE'] as const
    for (const state of path) expect(await to(state)).toBe(state)
    for (const state of ['PENDING', 'ISSUING', 'ERROR'] as const) expect(await to(state)).toBeNull()
    expect((await eventsOf('ssl.example.net')).map(({ type }) => type).slice(1)).toEqual([
      'domain.ssl.error',
      'domain.ssl.active',
      'domain.ssl.renewed',
      'domain.ssl.expired',
      'domain.ssl.active',
    ])
  })

  test('of two changes of ssl at once one takes place, and the certificate shows in the API', async () => {
    await attach('cert.example.net')
    const id = await idOf('cert.example.net')
    const started = await Promise.all([1, 2, 3].map(() => changeSsl(api.db, api.config, id, { to: 'ISSUING' })))
    expect(started.filter((view) => view !== null)).toHaveLength(1)
    const certificate = {
      issuer: 'CN=Test',
      serial: '01',
      notBefore: '2026-11-14T08:40:00.000Z',
      notAfter: '2027-02-12T08:40:00.000Z',
      sans: ['cert.example.net'],
      lastError: null,
      nextAttemptAt: null,
    }
    await changeSsl(api.db, api.config, id, { to: 'ACTIVE', certificate })
    expect((await api.call('GET', '/domains/cert.example.net')).body.certificate).toEqual(certificate)
  })
})
