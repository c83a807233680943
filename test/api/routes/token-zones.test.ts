// Tokens narrowed to parts of zones: what they read and change, that nothing else is open to them, and their children.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operationsOf } from '../../access/operations.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  for (const name of ['site', 'other']) await api.call('POST', '/projects', { body: { name, repo: `acme/${name}` } })
  for (const name of ['mine.com', 'second.com']) {
    await api.call('POST', '/domains', { body: { project: 'site', name } })
    for (const [type, place, value] of [
      ['TXT', '_acme-challenge', 'one'],
      ['TXT', '_acme-challenge.www', 'two'],
      ['TXT', 'x_acme-challenge', 'other name'],
      ['TXT', '@', 'other name'],
      ['A', 'www', '192.0.2.1'],
      ['CAA', '_acme-challenge', '0 issue ";"'],
    ]) {
      await api.call('POST', `/dns/${name}/records`, { body: { type, name: place, value } })
    }
  }
})
afterAll(() => api.stop())

const acme = { domain: 'mine.com', names: ['_acme-challenge', '_acme-challenge.*'], types: ['TXT'] }
const limited = { status: 403, body: { code: 'token_limited_to_records' } }

async function mint(body: object, token = api.token): Promise<Answer> {
  return api.call('POST', '/tokens', { token, body: { name: 't', ...body } })
}
async function secretOf(zones: object[], more: object = {}): Promise<string> {
  const made = await mint({ scopes: ['dns:write'], zones, ...more })
  expect(made.status, made.text).toBe(201)
  return made.body.secret
}
const idOf = async (zone: string, type: string, name: string) =>
  (await api.db.dnsRecord.findFirstOrThrow({ where: { domain: { name: zone }, type, name } })).id
const stateOf = async () => JSON.stringify(await api.db.dnsRecord.findMany({ orderBy: { id: 'asc' } }))

describe('a token of some names and types', () => {
  test('says so', async () => {
    const made = await mint({ scopes: ['dns:write'], zones: [{ ...acme, names: ['_ACME-challenge.mine.com.'] }] })
    const zones = [{ domain: 'mine.com', names: ['_acme-challenge'], types: ['TXT'] }]
    expect(made.body.zones).toEqual(zones)
    expect((await api.call('GET', '/tokens/current', { token: made.body.secret })).body.zones).toEqual(zones)
    expect((await mint({})).body.zones).toBeNull()
  })

  test('reads its records and no others', async () => {
    const token = await secretOf([acme])
    const get = (path: string) => api.call('GET', path, { token })
    const names = ['_acme-challenge', '_acme-challenge.www']
    expect((await get('/dns/mine.com/records')).body.records.map(({ name }: never) => name)).toEqual(names)
    expect((await get('/dns/mine.com/records?order=desc&type=TXT')).body.records).toHaveLength(2)
    expect((await get('/dns/mine.com/records?type=A')).body.records).toEqual([])
    expect((await get('/dns/mine.com/rrsets')).body.rrsets.map(({ name }: never) => name)).toEqual(names)
    expect((await get('/dns/mine.com/rrsets/_acme-challenge/TXT')).status).toBe(200)
    expect(await get('/dns/mine.com/rrsets/www/A')).toMatchObject(limited)
    expect((await get(`/dns/mine.com/records/${await idOf('mine.com', 'TXT', '_acme-challenge')}`)).status).toBe(200)
    for (const [type, name] of [
      ['A', 'www'],
      ['TXT', '@'],
      ['CAA', '_acme-challenge'],
    ] as const) {
      expect((await get(`/dns/mine.com/records/${await idOf('mine.com', type, name)}`)).status).toBe(404)
    }
    expect((await get('/dns/second.com/records')).status).toBe(404)
    expect((await get('/dns/second.com/rrsets')).status).toBe(404)
  })

  test('changes its records by every way there is, and no others', async () => {
    const token = await secretOf([acme])
    const call = (method: string, path: string, body?: object) => api.call(method, path, { token, body })
    const record = { type: 'TXT', name: '_acme-challenge.new', value: 'x' }
    const made = await call('POST', '/dns/mine.com/records', record)
    expect(made.status).toBe(201)
    const path = `/dns/mine.com/records/${made.body.id}`
    expect((await call('PATCH', path, { value: 'y' })).status).toBe(200)
    expect(
      (await call('POST', '/dns/mine.com/records/batch', { update: [{ id: made.body.id, ttl: 60 }] })).status,
    ).toBe(200)
    expect((await call('PUT', '/dns/mine.com/rrsets/_acme-challenge.new/TXT', { values: ['z'] })).status).toBe(200)
    expect((await call('DELETE', '/dns/mine.com/rrsets/_acme-challenge.new/TXT')).status).toBe(204)

    const before = await stateOf()
    const own = await idOf('mine.com', 'TXT', '_acme-challenge')
    const foreign = await idOf('mine.com', 'A', 'www')
    const caa = await idOf('mine.com', 'CAA', '_acme-challenge')
    for (const other of [
      { ...record, name: 'www' },
      { ...record, name: '@' },
      { ...record, name: 'x_acme-challenge' },
      { ...record, name: '*' },
      { type: 'A', name: '_acme-challenge', value: '192.0.2.1' },
    ]) {
      expect(await call('POST', '/dns/mine.com/records', other)).toMatchObject(limited)
      for (const query of ['', '?dryRun=true']) {
        expect(await call('POST', `/dns/mine.com/records/batch${query}`, { create: [other] })).toMatchObject(limited)
      }
      const set = `/dns/mine.com/rrsets/${other.name}/${other.type}`
      expect(await call('PUT', set, { values: [other.value] })).toMatchObject(limited)
      expect(await call('DELETE', set)).toMatchObject(limited)
    }
    // A record cannot be moved out, and others are not there.
    expect(await call('PATCH', `/dns/mine.com/records/${own}`, { name: 'www' })).toMatchObject(limited)
    expect(await call('POST', '/dns/mine.com/records/batch', { update: [{ id: own, name: 'www' }] })).toMatchObject(
      limited,
    )
    for (const id of [foreign, caa]) {
      expect((await call('PATCH', `/dns/mine.com/records/${id}`, { ttl: 60 })).status).toBe(404)
      expect((await call('DELETE', `/dns/mine.com/records/${id}`)).status).toBe(404)
      for (const body of [{ delete: [id] }, { update: [{ id, ttl: 60 }] }]) {
        const { status, body: problem } = await call('POST', '/dns/mine.com/records/batch', body)
        expect([status, problem.errors[0].code]).toEqual([422, 'not_found'])
      }
    }
    // A large batch is worked out by another thread.
    const many = Array.from({ length: 150 }, (_, i) => ({
      ...record,
      name: i === 149 ? 'www' : `_acme-challenge.${i}`,
    }))
    expect(await call('POST', '/dns/mine.com/records/batch', { create: many })).toMatchObject(limited)
    expect((await call('POST', '/dns/second.com/records', record)).status).toBe(404)
    expect((await call('PUT', '/dns/second.com/rrsets/_acme-challenge/TXT', { values: ['x'] })).status).toBe(404)
    expect(await stateOf()).toBe(before)
  })

  test('cannot touch a zone as a whole, its keys, or anything else of the API', async () => {
    const token = await secretOf([acme], { scopes: ['*'] })
    const open: string[] = []
    for (const { method, template, id } of operationsOf(api.app).filter(({ scope }) => scope !== 'operator')) {
      const path = template.replace('{domain}', 'mine.com').replace(/\{\w+\}/g, 'x')
      const file = id === 'importZone' && { body: '@ A 192.0.2.1', headers: { 'content-type': 'text/dns' } }
      const { status, body } = await api.call(method, path, { token, ...file })
      if (status !== 403 || body.code !== 'token_limited_to_records') open.push(id)
    }
    expect(open.sort()).toEqual([
      ...['changeDnsRecord', 'changeDnsRecords', 'createDnsRecord', 'createToken', 'deleteDnsRecord'],
      ...[
        'deleteDnsRrset',
        'getCurrentToken',
        'getDnsRecord',
        'getDnsRrset',
        'getDnssec',
        'getForeignKeys',
        'getZoneStatus',
      ],
      ...['listDnsRecords', 'listDnsRrsets', 'putDnsRrset'],
    ])
    expect(await api.call('POST', '/dns/mine.com/keys', { token, body: { name: 'k' } })).toMatchObject(limited)
  })

  test('that is of a whole zone may do everything with that zone, and nothing with others', async () => {
    const token = await secretOf([{ domain: 'second.com' }], { scopes: ['*'] })
    const call = (method: string, path: string, body?: object) => api.call(method, path, { token, body })
    const file = await call('GET', '/dns/second.com/zone')
    expect(file.status).toBe(200)
    expect((await call('GET', '/dns/mine.com/zone')).status).toBe(404)
    const key = await call('POST', '/dns/second.com/keys', { name: 'k' })
    expect(key.status).toBe(201)
    expect((await call('GET', `/dns/second.com/keys/${key.body.id}`)).status).toBe(200)
    const put = (domain: string) =>
      api.call('PUT', `/dns/${domain}/zone?dryRun=true`, {
        token,
        body: file.text,
        headers: { 'content-type': 'text/dns' },
      })
    expect((await put('second.com')).status).toBe(200)
    expect((await put('mine.com')).status).toBe(404)
    expect(await call('GET', '/domains')).toMatchObject(limited)
  })
})

describe('children', () => {
  test('are as narrow as their parent or narrower, never wider', async () => {
    const parent = await secretOf([acme], { scopes: ['dns:write', 'tokens:write'] })
    const child = async (zones?: unknown) => {
      const { status, body } = await mint({ scopes: ['dns:write'], ...(zones !== undefined && { zones }) }, parent)
      return status === 201
        ? body.zones
        : [status, body.errors?.map(({ pointer, code }: never) => `${pointer} ${code}`)]
    }
    expect(await child()).toEqual([acme])
    expect(await child(null)).toEqual([acme])
    const narrower = [{ domain: 'mine.com', names: ['_acme-challenge.www'], types: ['TXT'] }]
    expect(await child(narrower)).toEqual(narrower)
    const wider = [422, ['#/zones/0 widens']]
    expect(await child([{ ...acme, names: null }])).toEqual(wider)
    expect(await child([{ ...acme, types: null }])).toEqual(wider)
    expect(await child([{ domain: 'mine.com' }])).toEqual(wider)
    expect(await child([{ ...acme, names: ['*'] }])).toEqual(wider)
    expect(await child([{ ...acme, types: ['TXT', 'A'] }])).toEqual(wider)
    expect(await child([{ ...acme, domain: 'second.com' }])).toEqual(wider)
    expect(await child([narrower[0], { ...acme, names: ['www'] }])).toEqual([422, ['#/zones/1 widens']])
  })

  test('lose what their parent loses, and end where nothing is left', async () => {
    const { body: parent } = await mint({ scopes: ['dns:write', 'tokens:write'], zones: [{ domain: 'mine.com' }] })
    const made = async (zones: object[]) => (await mint({ scopes: ['dns:write'], zones }, parent.secret)).body.id
    const [within, texts, elsewhere] = [
      await made([{ ...acme, names: ['_acme-challenge.www'] }]),
      await made([{ domain: 'mine.com', types: ['TXT', 'A'] }]),
      await made([{ domain: 'mine.com', names: ['www'] }]),
    ]
    const change = (zones: object[]) => api.call('PATCH', `/tokens/${parent.id}`, { body: { zones } })
    expect((await change([acme])).body.zones).toEqual([acme])
    const zonesOf = async (id: string) => (await api.call('GET', `/tokens/${id}`)).body?.zones
    expect(await zonesOf(within)).toEqual([{ ...acme, names: ['_acme-challenge.www'] }])
    expect(await zonesOf(texts)).toEqual([acme])
    expect((await api.call('GET', `/tokens/${elsewhere}`)).status).toBe(404)
    const widened = await change([{ domain: 'mine.com' }])
    expect([widened.status, widened.body.errors[0].code]).toEqual([422, 'widens'])
    const rotated = await api.call('POST', `/tokens/${parent.id}/rotate`)
    expect(rotated.body.zones).toEqual([acme])
  })

  test('a token without the bound can be given it, at once', async () => {
    const { body } = await mint({ scopes: ['*'] })
    const get = (path: string) => api.call('GET', path, { token: body.secret })
    expect((await get('/projects')).status).toBe(200)
    expect((await api.call('PATCH', `/tokens/${body.id}`, { body: { zones: [acme] } })).status).toBe(200)
    expect(await get('/projects')).toMatchObject(limited)
    expect((await get('/dns/mine.com/records')).body.records).toHaveLength(2)
  })

  test('cannot be narrowed to zones that are not there, or another account’s', async () => {
    const other = await api.newAccount()
    await api.call('POST', '/projects', { token: other.token, body: { name: 'p', repo: 'acme/p' } })
    await api.call('POST', '/domains', { token: other.token, body: { project: 'p', name: 'theirs.com' } })
    for (const domain of ['nowhere.com', 'theirs.com', '*.mine.com', 'not a name']) {
      const { status, body } = await mint({ zones: [{ domain }] })
      expect([status, body.errors?.[0]?.pointer, body.errors?.[0]?.code]).toEqual([
        422,
        '#/zones/0/domain',
        'not_found',
      ])
    }
    // One of the same name later is not the one that was meant.
    await api.call('POST', '/domains', { body: { project: 'site', name: 'again.com' } })
    const token = await secretOf([{ domain: 'again.com' }])
    expect((await api.call('GET', '/dns/again.com/records', { token })).status).toBe(200)
    await api.call('DELETE', '/domains/again.com')
    await api.call('POST', '/domains', { body: { project: 'site', name: 'again.com' } })
    expect((await api.call('GET', '/dns/again.com/records', { token })).status).toBe(404)
  })
})
