// How much a zone and a set of records may hold, by every way of making records, also when requests race.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toFault } from '../../src/api/http/responses/problem.ts'
import { startApi, type TestApi } from '../helpers/api.ts'
import { waitsForLock } from '../helpers/database.ts'
import { until } from '../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  const limits = { QUOTA_RECORDS_PER_ZONE: '10000', QUOTA_RECORDS_PER_SET: '100', QUOTA_BYTES_PER_SET: '60000' }
  api = await startApi(limits)
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterAll(() => api.stop())

let zones = 0
async function newZone(): Promise<string> {
  const name = `limits${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}

const address = (n: number) => `10.0.${n >> 8}.${n & 255}`
const addresses = (from: number, to: number, name = 'set') =>
  Array.from({ length: to - from }, (_, n) => ({ type: 'A', name, value: address(from + n) }))
const create = (zone: string, body: object) => api.call('POST', `/dns/${zone}/records`, { body })
const batch = (zone: string, body: object, query = '', headers = {}) =>
  api.call('POST', `/dns/${zone}/records/batch${query}`, { body, headers })
const put = (zone: string, body: string) =>
  api.call('PUT', `/dns/${zone}/zone`, { body, headers: { 'content-type': 'text/dns', 'if-match': '*' } })
const count = (zone: string) => api.db.dnsRecord.count({ where: { domain: { name: zone } } })
const serialOf = async (zone: string) => (await api.db.domain.findFirstOrThrow({ where: { name: zone } })).serial

const text = (n: number) => `"${String(n).padStart(3, '0')}${'x'.repeat(252)}"`

describe('a name and type have at most 100 records', () => {
  test('a single record more is refused with the limit, and the 100 stay', async () => {
    const zone = await newZone()
    expect((await batch(zone, { create: addresses(0, 100) })).status).toBe(200)
    const { status, body } = await create(zone, addresses(100, 101)[0]!)
    expect(status).toBe(403)
    expect(body).toMatchObject({ code: 'quota_exceeded', limit: 'recordsPerSet', used: 101, max: 100 })
    expect(await count(zone)).toBe(100)
    expect((await create(zone, { type: 'TXT', name: 'set', value: 'another type' })).status).toBe(201)
    expect((await create(zone, { type: 'A', name: 'other', value: '10.1.1.1' })).status).toBe(201)
  })

  test('with an Idempotency-Key the refusal is not kept: the request works once there is room', async () => {
    const zone = await newZone()
    const { body } = await batch(zone, { create: addresses(0, 100) })
    const headers = { 'idempotency-key': 'one-too-many' }
    const send = () => api.call('POST', `/dns/${zone}/records`, { body: addresses(100, 101)[0]!, headers })
    expect((await send()).status).toBe(403)
    await api.call('DELETE', `/dns/${zone}/records/${body.created[0].id}`)
    expect((await send()).status).toBe(201)
    expect((await send()).headers['idempotency-replayed']).toBe('true')
    expect(await count(zone)).toBe(100)
  })

  test('a batch names the operation that is too much, small or large', async () => {
    const zone = await newZone()
    await batch(zone, { create: addresses(0, 95) })
    const small = await batch(zone, { create: addresses(95, 102) })
    expect(small.status).toBe(403)
    expect(small.body).toMatchObject({ limit: 'recordsPerSet', errors: [{ pointer: '#/create/5' }] })
    const filler = addresses(0, 90, 'a').concat(addresses(0, 90, 'b'))
    const large = await batch(zone, { create: [...filler, ...addresses(95, 102)] })
    expect(large.status).toBe(403)
    expect(large.body).toMatchObject({ limit: 'recordsPerSet', errors: [{ pointer: '#/create/185' }] })
    expect(await count(zone)).toBe(95)
  })

  test('a full set can be changed, but nothing moves into it', async () => {
    const zone = await newZone()
    const { body } = await batch(zone, { create: addresses(0, 100) })
    const [first, second] = body.created
    const patch = (id: string, change: object) => api.call('PATCH', `/dns/${zone}/records/${id}`, { body: change })
    expect((await patch(first.id, { ttl: 60 })).status).toBe(200)
    expect((await patch(first.id, { value: '10.9.9.9' })).status).toBe(200)
    const swap = [
      { id: first.id, value: second.value },
      { id: second.id, value: '10.9.9.9' },
    ]
    expect((await batch(zone, { update: swap })).status).toBe(200)
    const other = (await create(zone, { type: 'A', name: 'other', value: '10.8.8.8' })).body
    expect((await patch(other.id, { name: 'set' })).body).toMatchObject({ code: 'quota_exceeded' })
    const moved = await batch(zone, { update: [{ id: other.id, name: 'set' }] })
    expect(moved.body).toMatchObject({ code: 'quota_exceeded', errors: [{ pointer: '#/update/0' }] })
    expect(await count(zone)).toBe(101)
  })

  test('requests that race for the last places get as many as there are', async () => {
    const zone = await newZone()
    await batch(zone, { create: addresses(0, 95) })
    const answers = await Promise.all(addresses(100, 115).map((body) => create(zone, body)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(5)
    expect(statuses.filter((status) => status === 403)).toHaveLength(10)
    expect(await count(zone)).toBe(100)
  })

  test('a set that was larger before there was a limit keeps its records, which can be changed in place', async () => {
    const zone = await newZone()
    const { id } = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
    await api.db.$executeRaw`ALTER TABLE dns_record DISABLE TRIGGER dns_record_set`
    await api.db.$executeRaw`
      INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
      SELECT 'rec_old' || i, ${id}, 'A', 'set', '10.0.0.' || i, 300, now(), now() FROM generate_series(1, 150) i`
    await api.db.$executeRaw`ALTER TABLE dns_record ENABLE TRIGGER dns_record_set`
    const patched = await api.call('PATCH', `/dns/${zone}/records/rec_old7`, { body: { ttl: 60, comment: 'mine' } })
    expect(patched.body).toMatchObject({ ttl: 60, comment: 'mine', value: '10.0.0.7' })
    expect((await batch(zone, { update: [{ id: 'rec_old8', ttl: 60 }] })).status).toBe(200)
    expect((await create(zone, { type: 'A', name: 'set', value: '10.1.1.1' })).status).toBe(403)
    expect((await api.call('DELETE', `/dns/${zone}/records/rec_old9`)).status).toBe(204)
  })
})

test('a name and type have at most 60,000 bytes', async () => {
  const zone = await newZone()
  // Each value is 257 bytes with its quotes, so that 233 would fit; they are longer ones in one record here.
  const long = (n: number) => Array.from({ length: 12 }, (_, part) => text(n * 20 + part)).join(' ')
  const lines = Array.from({ length: 20 }, (_, n) => `t TXT ${long(n)}\n`)
  const refused = await put(zone, lines.join(''))
  expect(refused.status).toBe(403)
  expect(refused.body).toMatchObject({ limit: 'bytesPerSet', max: 60_000, errors: [{ pointer: '#/lines/20' }] })
  expect((await put(zone, lines.slice(0, 19).join(''))).status).toBe(200)
  const one = await create(zone, { type: 'TXT', name: 't', value: long(20) })
  expect(one.body).toMatchObject({ code: 'quota_exceeded', limit: 'bytesPerSet', max: 60_000 })
  const many = await batch(zone, { create: [{ type: 'TXT', name: 't', value: long(20) }] })
  expect(many.body).toMatchObject({ limit: 'bytesPerSet', errors: [{ pointer: '#/create/0' }] })
})

describe('whatever limits an operator sets, a set stays as large as secondaries and messages allow', () => {
  const raised = async () => {
    const { token, accountId } = await api.newAccount()
    await api.db.account.update({
      where: { id: accountId },
      data: { limits: { recordsPerSet: 500, bytesPerSet: 1e6 } },
    })
    await api.call('POST', '/projects', { body: { name: 'raised', repo: 'acme/site' }, token })
    const zone = `raised${++zones}.example.com`
    await api.call('POST', '/domains', { body: { project: 'raised', name: zone }, token })
    const send = (create: object[]) => api.call('POST', `/dns/${zone}/records/batch`, { body: { create }, token })
    return { token, send }
  }

  test('of 100 records', async () => {
    const { token, send } = await raised()
    expect((await api.call('GET', '/account', { token })).body.limits).toMatchObject({ recordsPerSet: 100 })
    expect((await send(addresses(0, 101))).body).toMatchObject({ limit: 'recordsPerSet', used: 101, max: 100 })
    expect((await send(addresses(0, 100))).status).toBe(200)
  })

  test('of 60,000 bytes', async () => {
    const { send } = await raised()
    const texts = Array.from({ length: 18 }, (_, n) => ({
      type: 'TXT',
      name: 't',
      value: Array.from({ length: 15 }, (_, part) => text(n * 15 + part)).join(' '),
    }))
    expect((await send(texts.slice(0, 9))).status).toBe(200)
    expect((await send(texts.slice(9))).body).toMatchObject({ limit: 'bytesPerSet', max: 60_000 })
  })

  test('counted as they are in a message: addresses that are short as text are not', async () => {
    const { send } = await raised()
    const hints = Array.from({ length: 250 }, (_, n) => `::${(n + 1).toString(16)}`).join(',')
    const services = Array.from({ length: 15 }, (_, n) => ({
      type: 'HTTPS',
      name: 'h',
      value: `${n + 1} . ipv6hint=${hints}`,
    }))
    expect((await send(services)).body).toMatchObject({ limit: 'bytesPerSet', max: 60_000 })
    expect((await send(services.slice(0, 11))).status).toBe(200)
    // Also if requests race: the database counts the same.
    const answers = await Promise.all(services.slice(11).map((one) => send([one])))
    expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(0)
  })
})

describe('the records of all zones of an account', () => {
  const max = 200_000
  let token: string
  const call = (method: string, path: string, body?: object | string) =>
    api.call(method, path, {
      token,
      body,
      ...(typeof body === 'string' && { headers: { 'content-type': 'text/dns', 'if-match': '*' } }),
    })
  const used = async () => (await call('GET', '/account')).body.usage.recordBytes
  const over = { status: 403, body: { code: 'quota_exceeded', limit: 'recordBytes', max } }

  test('have together as many bytes as it may have, by whatever way they come', async () => {
    const tenant = await api.newAccount()
    token = tenant.token
    await api.db.account.update({ where: { id: tenant.accountId }, data: { limits: { recordBytes: max } } })
    await call('POST', '/projects', { name: 'full', repo: 'acme/site' })
    const [one, other] = ['one.full.example.com', 'other.full.example.com']
    for (const name of [one, other]) await call('POST', '/domains', { project: 'full', name })
    const long = (n: number) => Array.from({ length: 15 }, (_, part) => text(n * 15 + part)).join(' ')
    const line = (n: number) => `t${n} TXT ${long(n)}\n`
    const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => line(from + n)).join('')
    expect((await call('PUT', `/dns/${one}/zone`, lines(0, 35))).status).toBe(200)
    const before = await used()
    expect(before).toBeGreaterThan(128_000)
    expect(await call('PUT', `/dns/${other}/zone`, lines(0, 35))).toMatchObject(over)
    const create = Array.from({ length: 18 }, (_, n) => ({ type: 'TXT', name: `u${n}`, value: long(n) }))
    expect((await call('POST', `/dns/${other}/records/batch`, { create: create.slice(0, 14) })).status).toBe(200)
    expect(await call('POST', `/dns/${one}/records/batch`, { create: create.slice(14) })).toMatchObject(over)
    // A replaced zone counts once, and what is deleted counts no more.
    expect((await call('PUT', `/dns/${one}/zone`, lines(1, 36))).status).toBe(200)
    expect((await call('PUT', `/dns/${one}/zone`, line(0))).status).toBe(200)
    expect((await call('DELETE', `/domains/${other}`)).status).toBe(204)
    expect(await used()).toBe(Buffer.byteLength(`t0${long(0)}`))
  })
})

describe('a name has records of at most 40 types', () => {
  const typed = (from: number, to: number, name = 'set') =>
    Array.from({ length: to - from }, (_, n) => ({ type: `TYPE${1000 + from + n}`, name, value: '\\# 1 00' }))
  const over = { code: 'quota_exceeded', limit: 'typesPerName', used: 41, max: 40 }

  test('one more is refused by every way of making records, and more of the same types are not', async () => {
    const zone = await newZone()
    expect((await batch(zone, { create: typed(0, 39) })).status).toBe(200)
    expect((await batch(zone, { create: typed(39, 41) })).body).toMatchObject({
      ...over,
      errors: [{ pointer: '#/create/1' }],
    })
    expect((await create(zone, typed(39, 40)[0]!)).status).toBe(201)
    const { status, body } = await create(zone, typed(40, 41)[0]!)
    expect([status, body.detail]).toEqual([403, 'The name set would have records of 41 types; the limit is 40.'])
    expect(body).toMatchObject(over)
    expect((await create(zone, { ...typed(0, 1)[0]!, value: '\\# 1 01' })).status).toBe(201)
    const other = await create(zone, typed(40, 41, 'other')[0]!)
    expect(other.status).toBe(201)
    const moved = { body: { name: 'set' } }
    expect((await api.call('PATCH', `/dns/${zone}/records/${other.body.id}`, moved)).body).toMatchObject(over)
    const file = typed(0, 41).map(({ type, value }) => `set ${type} ${value}\n`)
    expect((await put(zone, file.join(''))).body).toMatchObject({ ...over, errors: [{ pointer: '#/lines/41' }] })
    expect(await count(zone)).toBe(42)
  })
})

describe('an import', () => {
  test('of a set of 101 names the line, and changes nothing', async () => {
    const zone = await newZone()
    await put(zone, 'old A 192.0.2.1\n')
    for (const head of ['', `; ${'x'.repeat(20_000)}\n`]) {
      const { status, body } = await put(
        zone,
        head +
          addresses(0, 101)
            .map(({ value }) => `set A ${value}\n`)
            .join(''),
      )
      expect(status).toBe(403)
      const pointer = head === '' ? '#/lines/101' : '#/lines/102'
      expect(body).toMatchObject({ limit: 'recordsPerSet', used: 101, max: 100, errors: [{ pointer }] })
    }
    expect(await count(zone)).toBe(1)
    expect(await serialOf(zone)).toBe(2)
  })
})

describe('a large batch', () => {
  const named = (count: number, value = '10.0.0.1') =>
    Array.from({ length: count }, (_, n) => ({ type: 'A', name: `b${n}`, value }))

  test('answers and does what a small one does, and with a key once', async () => {
    const zone = await newZone()
    const dry = await batch(zone, { create: named(400) }, '?dryRun=true')
    expect(dry.body).toMatchObject({ dryRun: true, serial: 1 })
    expect(dry.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(await count(zone)).toBe(0)
    const headers = { 'idempotency-key': `batch-${zone}` }
    const made = await batch(zone, { create: named(400) }, '', headers)
    expect(made.body).toMatchObject({ dryRun: false, serial: 2 })
    expect(made.headers['content-type']).toBe('application/json; charset=utf-8')
    const replayed = await batch(zone, { create: named(400) }, '', headers)
    expect(replayed.text).toBe(made.text)
    expect(replayed.headers['idempotency-replayed']).toBe('true')
    expect(await serialOf(zone)).toBe(2)
    const [first] = made.body.created
    expect((await api.call('GET', `/dns/${zone}/records/${first.id}`)).body).toEqual(first)
    const events = await api.db.event.findMany({ where: { subject: first.id } })
    expect(events).toMatchObject([{ type: 'dns.record.created', data: first }])
    const update = made.body.created.map(({ id }: { id: string }) => ({ id, ttl: 600 }))
    expect((await batch(zone, { update })).body).toMatchObject({ serial: 3 })
    expect((await batch(zone, { update })).body).toMatchObject({ serial: 3, updated: [] })
    const ids = update.map(({ id }: { id: string }) => id)
    expect((await batch(zone, { delete: [...ids, 'rec_none'] })).body.errors).toMatchObject([
      { pointer: '#/delete/400', code: 'not_found' },
    ])
    expect((await batch(zone, { delete: ids })).body).toMatchObject({ serial: 4 })
    expect(await count(zone)).toBe(0)
  })

  test('is worked out again if the zone changed after it was', async () => {
    const zone = await newZone()
    const { id } = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
    const client = new pg.Client({ connectionString: api.databaseUrl })
    await client.connect()
    await client.query('BEGIN')
    await client.query('SELECT 1 FROM domain WHERE id = $1 FOR NO KEY UPDATE', [id])
    const late = batch(zone, { create: named(200) })
    await until(() => waitsForLock(api.db))
    await client.query(
      `INSERT INTO dns_record (id, domain_id, type, name, value, ttl, created_at, updated_at)
       VALUES ('rec_first', $1, 'CNAME', 'b7', 'a.example.net', 300, now(), now())`,
      [id],
    )
    await client.query('UPDATE domain SET serial = serial + 1 WHERE id = $1', [id])
    await client.query('COMMIT')
    await client.end()
    const { status, body } = await late
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'record_conflict', record: { id: 'rec_first' } })
    expect(await count(zone)).toBe(1)
  })
})

test('CNAME and ALIAS stand alone by the trigger too, one row or many at once', async () => {
  const zone = await newZone()
  const { id } = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
  const row = (n: number, type: string, name: string) => ({
    ...{ id: `rec_t${zones}_${n}`, domainId: id, type, name, value: `v${n}` },
    ...{ ttl: 300, createdAt: new Date(), updatedAt: new Date() },
  })
  const insert = (...rows: [string, string][]) =>
    api.db.dnsRecord.createMany({ data: rows.map(([type, name], n) => row(++made + n * 1000, type, name)) })
  let made = 0
  const refused = { meta: { driverAdapterError: { cause: { originalCode: '23P01' } } } }
  await insert(['CNAME', 'c'], ['A', 'a'], ['ALIAS', 'al'], ['TXT', 'al'], ['TXT', 'a'])
  for (const [type, name] of [
    ['A', 'c'],
    ['CNAME', 'c'],
    ['CNAME', 'a'],
    ['ALIAS', 'a'],
    ['ALIAS', 'al'],
    ['AAAA', 'al'],
    ['CNAME', 'al'],
  ] as [string, string][]) {
    await expect(insert([type, name]), `${type} at ${name}`).rejects.toMatchObject(refused)
    await expect(insert(['A', 'free'], [type, name], ['MX', 'free'])).rejects.toMatchObject(refused)
  }
  await expect(insert(['CNAME', 'new'], ['TXT', 'new'])).rejects.toMatchObject(refused)
  await insert(['MX', 'a'], ['A', 'a'], ['MX', 'al'])
  expect(await count(zone)).toBe(8)
})

test('a statement that takes too long is a problem that says so, and no internal error', () => {
  const fault = toFault(Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' }))
  expect(fault.code).toBe('overloaded')
  expect(fault.members.retryAfterSeconds).toBeGreaterThan(0)
})

describe('a batch of short ids of long records', () => {
  const ids: string[] = []
  let zone: string
  beforeAll(async () => {
    zone = await newZone()
    const lines = Array.from({ length: 280 }, (_, n) => `t${n} TXT ${`${text(n)} `.repeat(15)}\n`)
    expect((await put(zone, lines.join(''))).status).toBe(200)
    const rows = await api.db.dnsRecord.findMany({ where: { domain: { name: zone } }, select: { id: true } })
    ids.push(...rows.map(({ id }) => id))
  })
  const longer = (count: number) => ({ update: ids.slice(0, count).map((id, n) => ({ id, ttl: 100 + n })) })

  test('is refused where its answer and its events would be large', async () => {
    for (const query of ['', '?dryRun=true']) {
      const { status, body } = await batch(zone, longer(280), query)
      expect(status).toBe(422)
      expect(body).toMatchObject({ errors: [{ pointer: '#', code: 'too_long' }] })
    }
    expect((await batch(zone, longer(10))).status).toBe(200)
  })

  test('that changes nothing is not kept with its key', async () => {
    const kept = () => api.db.idempotencyKey.count()
    const before = await kept()
    const send = () => batch(zone, longer(20), '?dryRun=true', { 'idempotency-key': 'what-if' })
    const [first, second] = [await send(), await send()]
    expect(first.status).toBe(200)
    expect(second.headers['idempotency-replayed']).toBeUndefined()
    expect(await kept()).toBe(before)
  })
})
