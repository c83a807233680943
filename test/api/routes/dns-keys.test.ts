// Keys of zones: what they are, who may make them, and that their secrets are shown once.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { placeOf } from '../../../src/platform/secrets/secrets.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterAll(() => api.stop())

let zones = 0
async function newZone(): Promise<string> {
  const name = `keys${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}

const make = (zone: string, body: object) => api.call('POST', `/dns/${zone}/keys`, { body })
const acme = { name: 'acme', names: ['_acme-challenge', '_acme-challenge.*'], types: ['TXT'] }

test('a key has what nsupdate wants, its secret only once, and sealed at rest', async () => {
  const zone = await newZone()
  const { status, headers, body } = await make(zone, acme)
  expect(status).toBe(201)
  expect(headers.location).toBe(`/api/dns/${zone}/keys/${body.id}`)
  const { secret, ...view } = body
  expect(view).toMatchObject({ ...acme, domain: zone, purpose: 'update', algorithm: 'hmac-sha256', lastUsedAt: null })
  expect(body.keyName).toBe(`acme.${body.id.slice('key_'.length)}`)
  expect(Buffer.from(secret, 'base64')).toHaveLength(32)
  expect((await api.call('GET', `/dns/${zone}/keys/${body.id}`)).body).toEqual(view)
  expect((await api.call('GET', `/dns/${zone}/keys`)).body.keys).toEqual([view])
  const row = await api.db.dnsKey.findUniqueOrThrow({ where: { id: body.id } })
  expect(Buffer.from(row.secret).includes(Buffer.from(secret, 'base64'))).toBe(false)
  expect(api.deps.vault.open(row.secret, placeOf.dnsKey(body.id)).toString('base64')).toBe(secret)
  const [event] = await api.db.event.findMany({ where: { subject: body.id } })
  expect(event).toMatchObject({ type: 'dns.key.created', data: view })
  expect(JSON.stringify(event!.data)).not.toContain(secret)
})

test('names and types that are left out stand for all; a transfer is of the whole zone', async () => {
  const zone = await newZone()
  expect((await make(zone, { name: 'all' })).body).toMatchObject({ names: null, types: null })
  expect((await make(zone, { name: 'none', names: null, types: null })).body).toMatchObject({
    names: null,
    types: null,
  })
  const transfer = await make(zone, { name: 'secondary', purpose: 'transfer' })
  expect(transfer.body).toMatchObject({ purpose: 'transfer', names: null, types: null })
  const narrowed = await make(zone, { ...acme, name: 'other', purpose: 'transfer' })
  expect(narrowed.body.errors.map(({ pointer, code }: never) => [pointer, code])).toEqual([
    ['#/names', 'not_allowed'],
    ['#/types', 'not_allowed'],
  ])
})

test.each([
  ['a name with a dot', { name: 'a.b' }, '#/name'],
  ['capitals', { name: 'Acme' }, '#/name'],
  ['a pattern with a star in the middle', { name: 'a', names: ['ok', 'a.*.b'] }, '#/names/1'],
  ['a name outside the zone', { name: 'a', names: ['www.example.net.'] }, '#/names/0'],
  ['no pattern at all', { name: 'a', names: [] }, '#/names'],
  ['a type that there is not', { name: 'a', types: ['TXTX'] }, '#/types/0'],
])('%s is refused', async (_what, body, pointer) => {
  const { status, body: problem } = await make(await newZone(), body)
  expect([status, problem.errors?.[0]?.pointer]).toEqual([422, pointer])
})

test('a name is used once in a zone, also by two at once', async () => {
  const [zone, other] = [await newZone(), await newZone()]
  const answers = await Promise.all([1, 2, 3].map(() => make(zone, acme)))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  expect(answers.find(({ status }) => status === 409)!.body.code).toBe('key_exists')
  expect((await make(other, acme)).status).toBe(201)
})

test('a deleted key is gone, with an event; its domain takes the rest along', async () => {
  const zone = await newZone()
  const { body } = await make(zone, acme)
  const path = `/dns/${zone}/keys/${body.id}`
  const { headers } = await api.call('GET', path)
  expect((await api.call('DELETE', path, { headers: { 'if-match': '"other"' } })).status).toBe(412)
  expect((await api.call('DELETE', path, { headers: { 'if-match': headers.etag! } })).status).toBe(204)
  for (const method of ['GET', 'DELETE']) expect((await api.call(method, path)).status).toBe(404)
  const types = (await api.db.event.findMany({ where: { subject: body.id } })).map(({ type }) => type)
  expect(types.sort()).toEqual(['dns.key.created', 'dns.key.deleted'])
  await make(zone, acme)
  await api.call('DELETE', `/domains/${zone}`)
  expect(await api.db.dnsKey.count({ where: { domain: { name: zone } } })).toBe(0)
})
