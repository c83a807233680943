// /dns/{domain}/dnssec: what it shows, who may change it, and what is refused.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createZoneKey } from '../../../src/services/dns/dnssec/zone-keys.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterAll(() => api.stop())

let zones = 0
async function newZone(): Promise<string> {
  const name = `signed${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}
const path = (zone: string) => `/dns/${zone}/dnssec`

test('before it is verified, a zone is unsigned, and says what would sign it', async () => {
  const zone = await newZone()
  const { status, headers, body } = await api.call('GET', path(zone))
  expect(status).toBe(200)
  expect(headers.etag).toBeDefined()
  expect(body).toEqual({
    domain: zone,
    enabled: false,
    state: 'UNSIGNED',
    denial: 'nsec',
    keys: [],
    ds: [],
    dnskey: [],
    foreignKeys: [],
    parent: { checkedAt: null, ds: [], matches: null },
    nextCheckAt: null,
    reason: 'The zone is not signed. To sign it, PUT {"enabled": true}.',
  })
})

test('what is asked for is remembered, with an event, and asking twice is nothing new', async () => {
  const zone = await newZone()
  const body = { enabled: true, denial: 'nsec3' }
  const first = await api.call('PUT', path(zone), { body })
  expect(first.body).toMatchObject({ enabled: true, state: 'UNSIGNED', denial: 'nsec3' })
  expect(first.body.reason).toBe(`The zone is signed as soon as ${zone} is verified.`)
  const second = await api.call('PUT', path(zone), { body: { enabled: true } })
  expect(second.headers.etag).toBe(first.headers.etag)
  expect((await api.call('DELETE', path(zone))).status).toBe(204)
  expect((await api.call('GET', path(zone))).body).toMatchObject({ enabled: false, denial: 'nsec3' })
  const events = await api.db.event.findMany({ where: { subject: zone, type: { startsWith: 'dns.dnssec.' } } })
  expect(events.map(({ type }) => type)).toEqual(['dns.dnssec.updated', 'dns.dnssec.updated'])
})

test('a change based on an old version is refused', async () => {
  const zone = await newZone()
  const { headers } = await api.call('GET', path(zone))
  const ifMatch = { 'if-match': headers.etag! }
  expect((await api.call('PUT', path(zone), { body: { enabled: true }, headers: ifMatch })).status).toBe(200)
  expect((await api.call('PUT', path(zone), { body: { enabled: false }, headers: ifMatch })).status).toBe(412)
  expect((await api.call('DELETE', path(zone), { headers: ifMatch })).status).toBe(412)
})

test.each([
  ['nothing', {}, '#/enabled'],
  ['a text for a switch', { enabled: 'yes' }, '#/enabled'],
  ['another denial', { enabled: true, denial: 'nsec5' }, '#/denial'],
  ['an unknown field', { enabled: true, algorithm: 8 }, '#/algorithm'],
])('%s is refused by its field', async (_what, body, pointer) => {
  const refused = await api.call('PUT', path(await newZone()), { body })
  expect(refused.status).toBe(422)
  expect(refused.body.errors.map((error: { pointer: string }) => error.pointer)).toEqual([pointer])
})

test('a rollover needs a zone that is active', async () => {
  const zone = await newZone()
  const refused = await api.call('POST', `${path(zone)}/rollover`)
  expect(refused.status).toBe(409)
  expect(refused.body).toMatchObject({ code: 'dnssec_not_ready' })
  expect(refused.body.detail).toContain('is UNSIGNED')
})

test('a token that is narrowed to records reads it, and changes nothing', async () => {
  const zone = await newZone()
  const made = await api.call('POST', '/tokens', {
    body: {
      name: 'acme',
      scopes: ['dns:write'],
      zones: [{ domain: zone, names: ['_acme-challenge'], types: ['TXT'] }],
    },
  })
  const { secret: token } = made.body
  expect((await api.call('GET', path(zone), { token })).status).toBe(200)
  for (const [method, url, body] of [
    ['PUT', path(zone), { enabled: true }],
    ['PUT', `${path(zone)}/foreign-keys`, { keys: [] }],
    ['DELETE', path(zone), undefined],
    ['POST', `${path(zone)}/rollover`, undefined],
  ] as const) {
    const refused = await api.call(method, url, { token, body })
    expect([method, refused.status, refused.body.code]).toEqual([method, 403, 'token_limited_to_records'])
  }
})

test('the private key is in no answer and no event', async () => {
  const zone = await newZone()
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
  const use = { published: true, signing: true, announced: true }
  const key = await api.db.zoneKey.create({ data: createZoneKey(api.deps.vault, id, use) })
  await api.db.domain.update({ where: { id }, data: { dnssecState: 'active', verified: true, dnssec: true } })
  const { text } = await api.call('GET', path(zone))
  const rolled = await api.call('POST', `${path(zone)}/rollover`)
  expect(rolled.status).toBe(202)
  const events = await api.db.event.findMany({ where: { subject: zone } })
  for (const shown of [text, rolled.text, JSON.stringify(events.map(({ data }) => data))]) {
    expect(shown).toContain(Buffer.from(key.publicKey).toString('base64'))
    expect(shown).not.toContain(Buffer.from(key.privateKey).toString('base64'))
  }
})

// RFC 6605, section 6.1, as a key for keys, and a key for records.
const base64 = 'GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA=='
const entryPoint = `257 3 13 ${base64}`

test('keys of another provider are stored, shown with their DS, raise the serial, and are removed by an empty list', async () => {
  const zone = await newZone()
  const serial = async () => (await api.db.domain.findFirstOrThrow({ where: { name: zone } })).serial
  const before = await serial()
  const spaced = `256  3 13 ${base64.slice(0, 40)} ${base64.slice(40)}\n`
  const put = (keys: string[], headers = {}) =>
    api.call('PUT', `${path(zone)}/foreign-keys`, { body: { keys }, headers })
  const first = await put([entryPoint, spaced, entryPoint])
  expect((await api.call('GET', path(zone))).body.foreignKeys).toEqual(first.body.keys)
  expect(first.body.keys).toEqual([
    { dnskey: entryPoint, keyTag: 55648, ds: expect.stringMatching(/^55648 13 2 [0-9A-F]{64}$/) },
    { dnskey: `256 3 13 ${base64}`, keyTag: 55647, ds: null },
  ])
  expect(await serial()).toBe(before + 1)
  expect((await put([entryPoint, spaced])).headers.etag).toBe(first.headers.etag)
  expect(await serial()).toBe(before + 1)
  expect((await put([], { 'if-match': '"old"' })).status).toBe(412)
  expect((await put([])).body).toEqual({ keys: [] })
  const events = await api.db.event.count({ where: { subject: zone, type: 'dns.dnssec.updated' } })
  expect(events).toBe(2)
})

test.each([
  ['nothing', ''],
  ['a name', 'example.com'],
  ['a revoked key', `385 3 13 ${base64}`],
  ['no zone key', `1 3 13 ${base64}`],
  ['another protocol', `257 2 13 ${base64}`],
  ['an algorithm that is not used any more', `257 3 5 ${base64}`],
  ['a key that is cut off', `257 3 13 ${base64.slice(0, 40)}`],
  ['a key of another length', `257 3 15 ${base64}`],
  ['other characters', `257 3 13 ${base64.slice(0, -4)}A!==`],
  ['more than one record', `${entryPoint}\n257 3 13 ${base64}`],
  ['too long a key', `257 3 8 ${'A'.repeat(1_000)}`],
])('as a key of another provider, %s is refused', async (_what, key) => {
  const refused = await api.call('PUT', `${path(await newZone())}/foreign-keys`, { body: { keys: [key] } })
  expect(refused.status).toBe(422)
  expect(refused.body.errors[0].pointer).toBe('#/keys/0')
})

test('there are at most eight keys of another provider, and none is our own', async () => {
  const zone = await newZone()
  const nine = Array.from({ length: 9 }, () => entryPoint)
  expect((await api.call('PUT', `${path(zone)}/foreign-keys`, { body: { keys: nine } })).status).toBe(422)
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
  const use = { published: true, signing: true, announced: true }
  await api.db.zoneKey.create({ data: createZoneKey(api.deps.vault, id, use) })
  const { dnskey } = (await api.call('GET', path(zone))).body
  const refused = await api.call('PUT', `${path(zone)}/foreign-keys`, { body: { keys: dnskey } })
  expect(refused.body.errors).toMatchObject([{ pointer: '#/keys/0', code: 'not_allowed' }])
})

test('a wildcard has no zone of its own', async () => {
  const zone = await newZone()
  expect((await api.call('GET', path(`*.${zone}`))).status).toBe(404)
})
