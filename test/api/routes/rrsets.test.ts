// RRsets: replaced as a whole, idempotent, with a version, and listed by name and type.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterAll(() => api.stop())

let zones = 0
async function newZone(): Promise<string> {
  const name = `sets${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}

const put = (zone: string, set: string, body: object, headers: Record<string, string> = {}) =>
  api.call('PUT', `/dns/${zone}/rrsets/${set}`, { body, headers })
const get = (zone: string, set: string) => api.call('GET', `/dns/${zone}/rrsets/${set}`)
const record = (zone: string, type: string, name: string, value: string) =>
  api.call('POST', `/dns/${zone}/records`, { body: { type, name, value } })
const serialOf = async (zone: string) => (await api.db.domain.findFirstOrThrow({ where: { name: zone } })).serial
const rowsOf = (zone: string) =>
  api.db.dnsRecord.findMany({ where: { domain: { name: zone } }, orderBy: { id: 'asc' } })

describe('PUT', () => {
  test('makes the set, and done again changes nothing', async () => {
    const zone = await newZone()
    const before = await serialOf(zone)
    const body = { values: ['192.0.2.1', '192.0.2.2'], ttl: 300 }
    const made = await put(zone, 'www/A', body)
    expect([made.status, made.body]).toEqual([200, { domain: zone, name: 'www', type: 'A', ...body }])
    const rows = await rowsOf(zone)
    const again = await put(zone, 'www/A', body)
    expect(again.body).toEqual(made.body)
    expect(again.headers.etag).toBe(made.headers.etag)
    expect((await get(zone, 'www/A')).headers.etag).toBe(made.headers.etag)
    expect(await rowsOf(zone)).toEqual(rows)
    expect(await serialOf(zone)).toBe(before + 1)
    const events = await api.db.event.findMany({ where: { subject: { in: rows.map(({ id }) => id) } } })
    expect(events.map(({ type }) => type)).toEqual(['dns.record.created', 'dns.record.created'])
  })

  test('keeps what stays, deletes what goes, and leaves all else alone', async () => {
    const zone = await newZone()
    await record(zone, 'A', 'www', '192.0.2.1')
    await record(zone, 'A', 'www', '192.0.2.2')
    await record(zone, 'TXT', 'www', 'beside')
    await record(zone, 'A', 'other', '192.0.2.9')
    const [kept] = await rowsOf(zone)
    const before = await serialOf(zone)
    const { body } = await put(zone, 'www/a', { values: ['192.0.2.3', '192.0.2.1'], ttl: 60 })
    expect(body).toMatchObject({ ttl: 60, values: ['192.0.2.1', '192.0.2.3'] })
    const left = (await rowsOf(zone)).map(({ id, type, name, value, ttl }) => [id === kept!.id, type, name, value, ttl])
    expect(left).toEqual([
      [true, 'A', 'www', '192.0.2.1', 60],
      [false, 'TXT', 'www', '"beside"', 300],
      [false, 'A', 'other', '192.0.2.9', 300],
      [false, 'A', 'www', '192.0.2.3', 60],
    ])
    expect(await serialOf(zone)).toBe(before + 1)
  })

  test('takes the apex, wildcards, full names and values in any spelling', async () => {
    const zone = await newZone()
    expect((await put(zone, '@/MX', { values: ['10 MAIL.example.net.'] })).body).toMatchObject({
      name: '@',
      ttl: 300,
      values: ['10 mail.example.net'],
    })
    expect((await put(zone, `*.${zone}/TXT`, { values: ['hi there'] })).body).toMatchObject({
      name: '*',
      values: ['"hi there"'],
    })
  })

  test('names the value that is refused, and changes nothing', async () => {
    const zone = await newZone()
    await put(zone, 'www/A', { values: ['192.0.2.1'] })
    const errors = async (set: string, body: object) => {
      const answer = await put(zone, set, body)
      return [answer.status, answer.body.errors?.map(({ pointer, code }: never) => `${pointer} ${code}`)]
    }
    expect(await errors('www/A', { values: ['192.0.2.2', 'x', '192.0.2.2'] })).toEqual([
      422,
      ['#/values/1 bad_format', '#/values/2 repeated'],
    ])
    expect(await errors('www/A', { values: [] })).toEqual([422, ['#/values too_short']])
    expect(await errors('www/A', { values: ['192.0.2.1'], ttl: 1 })).toEqual([422, ['#/ttl out_of_range']])
    expect(await errors('@/NS', { values: ['ns.example.net'] })).toEqual([422, ['#/values/0 ns_at_apex']])
    expect(await errors('www/NOPE', { values: ['x'] })).toEqual([422, ['#/type not_allowed']])
    expect(await errors('a..b/A', { values: ['192.0.2.1'] })).toEqual([422, ['#/name bad_format']])
    expect((await put(zone, 'www/CNAME', { values: ['example.net'] })).body.code).toBe('record_conflict')
    expect((await put(zone, 'one/CNAME', { values: ['a.example.net', 'b.example.net'] })).body.code).toBe(
      'record_conflict',
    )
    expect((await get(zone, 'www/A')).body.values).toEqual(['192.0.2.1'])
    expect(await rowsOf(zone)).toHaveLength(1)
  })

  test('of two with the same version one is refused, and If-Match never makes a set', async () => {
    const zone = await newZone()
    for (const etag of ['*', '"any"']) {
      expect((await put(zone, 'www/A', { values: ['192.0.2.1'] }, { 'if-match': etag })).status).toBe(412)
    }
    const { headers } = await put(zone, 'www/A', { values: ['192.0.2.1'] })
    const ifMatch = { 'if-match': headers.etag! }
    const answers = await Promise.all(
      ['192.0.2.2', '192.0.2.3'].map((value) => put(zone, 'www/A', { values: [value] }, ifMatch)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
  })

  test('by many at once ends with one of the sets, whole', async () => {
    const zone = await newZone()
    const sets = Array.from({ length: 8 }, (_, i) => [`192.0.2.${i}`, `198.51.100.${i}`])
    const answers = await Promise.all(sets.map((values) => put(zone, 'www/A', { values })))
    for (const { status } of answers) expect(status).toBe(200)
    expect(sets).toContainEqual((await get(zone, 'www/A')).body.values)
  })
})

test('DELETE takes the whole set, and where there is none it has nothing to do', async () => {
  const zone = await newZone()
  const { headers } = await put(zone, 'www/A', { values: ['192.0.2.1', '192.0.2.2'] })
  await put(zone, 'www/TXT', { values: ['stays'] })
  const remove = (etag?: string) =>
    api.call('DELETE', `/dns/${zone}/rrsets/www/A`, { headers: etag ? { 'if-match': etag } : {} })
  expect((await remove('"other"')).status).toBe(412)
  expect((await remove(headers.etag)).status).toBe(204)
  const after = await serialOf(zone)
  expect((await get(zone, 'www/A')).status).toBe(404)
  expect((await remove()).status).toBe(204)
  expect((await remove('*')).status).toBe(412)
  expect(await serialOf(zone)).toBe(after)
  expect((await rowsOf(zone)).map(({ type }) => type)).toEqual(['TXT'])
})

test('the list has each set once, by name and type, page by page in both directions', async () => {
  const zone = await newZone()
  const wanted = ['@ MX', '@ TXT', 'a A', 'a AAAA', 'b A', 'b TXT', 'c A']
  await put(zone, '@/MX', { values: ['10 a.example.net', '20 b.example.net'] })
  await put(zone, '@/TXT', { values: ['one', 'two', 'three'] })
  for (const name of ['a', 'b', 'c']) await put(zone, `${name}/A`, { values: ['192.0.2.1', '192.0.2.2'] })
  await put(zone, 'a/AAAA', { values: ['2001:db8::1'] })
  await put(zone, 'b/TXT', { values: ['x'] })
  const read = async (query: string) => {
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const { body } = await api.call('GET', `/dns/${zone}/rrsets?limit=2${query}${cursor}`)
      seen.push(...body.rrsets.map(({ name, type }: never) => `${name} ${type}`))
      if (!body.hasMore) return seen
      cursor = `&cursor=${body.nextCursor}`
    }
  }
  expect(await read('')).toEqual(wanted)
  expect(await read('&order=desc')).toEqual([...wanted].reverse())
  expect(await read('&type=A')).toEqual(['a A', 'b A', 'c A'])
  expect(await read('&name=b')).toEqual(['b A', 'b TXT'])
  const { body } = await api.call('GET', `/dns/${zone}/rrsets?name=@&type=TXT`)
  expect(body.rrsets).toEqual([
    { domain: zone, name: '@', type: 'TXT', ttl: 300, values: ['"one"', '"two"', '"three"'] },
  ])
})
