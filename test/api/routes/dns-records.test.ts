import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'
import { waitsForLock } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  for (const name of ['site', 'other']) await api.call('POST', '/projects', { body: { name, repo: `acme/${name}` } })
})
afterAll(() => api.stop())

let zones = 0
/** A fresh zone for each test, so that none stands in the way of another. */
async function newZone(): Promise<string> {
  const name = `zone${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}

type Fields = { type: string; name: string; value: string; ttl?: unknown; comment?: unknown }

const create = (zone: string, body: Fields, headers: Record<string, string> = {}) =>
  api.call('POST', `/dns/${zone}/records`, { body, headers })

const batch = (zone: string, body: object, query = '') =>
  api.call('POST', `/dns/${zone}/records/batch${query}`, { body })

const serialOf = async (zone: string) => (await api.db.domain.findFirstOrThrow({ where: { name: zone } })).serial
const records = async (zone: string, query = '') => (await api.call('GET', `/dns/${zone}/records${query}`)).body.records
const eventsOf = async (subject: string) =>
  (await api.db.event.findMany({ where: { subject }, orderBy: { seq: 'asc' } })).map(({ type }) => type)

describe('creating', () => {
  test('a record has the planned fields first, in order, and the default ttl', async () => {
    const zone = await newZone()
    const { status, headers, body } = await create(zone, { type: 'A', name: 'www', value: '192.0.2.1' })
    expect(status).toBe(201)
    expect(headers.location).toBe(`/api/dns/${zone}/records/${body.id}`)
    expect(Object.keys(body)).toEqual([
      'id',
      'domain',
      'type',
      'name',
      'value',
      'ttl',
      'createdAt',
      'updatedAt',
      'comment',
    ])
    expect(body).toMatchObject({
      id: expect.stringMatching(/^rec_/),
      domain: zone,
      type: 'A',
      name: 'www',
      ttl: 300,
      comment: null,
    })
    const [event] = await api.db.event.findMany({ where: { subject: body.id } })
    expect(event).toMatchObject({ type: 'dns.record.created', data: body, accountId: api.accountId })
    const domain = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
    expect(event!.projectId).toBe(domain.projectId)
    expect(domain.serial).toBe(2)
  })

  test.each([
    ['A', 'a', '192.0.2.1', '192.0.2.1'],
    ['AAAA', 'aaaa', '2001:DB8:0::1', '2001:db8::1'],
    ['ALIAS', '@', 'Target.Example.NET.', 'target.example.net'],
    ['CAA', '@', '0 issue "letsencrypt.org"', '0 issue "letsencrypt.org"'],
    ['CNAME', 'cname', 'www.example.net', 'www.example.net'],
    ['CDNSKEY', '@', '257 3 13 mdss', '257 3 13 mdss'],
    ['CDS', '@', '0 0 0 00', '0 0 0 00'],
    ['CERT', 'cert', 'PKIX 0 0 MIIB', '1 0 0 MIIB'],
    ['DNAME', 'moved', 'example.net', 'example.net'],
    ['HINFO', 'host', 'PC Linux', '"PC" "Linux"'],
    ['LOC', '@', '52 22 23 N 4 53 32 E -2m', '52 22 23.000 N 4 53 32.000 E -2.00m 1m 10000m 10m'],
    ['NAPTR', '@', '1 1 s SIP+D2U "" _sip._udp.example.com', '1 1 "s" "SIP+D2U" "" _sip._udp.example.com'],
    ['OPENPGPKEY', 'key', 'mQINBFUo', 'mQINBFUo'],
    ['PTR', '1', 'host.example.com.', 'host.example.com'],
    ['SMIMEA', 'cert', `3 0 1 ${'ab'.repeat(32)}`, `3 0 1 ${'AB'.repeat(32)}`],
    ['SSHFP', 'host', `4 2 ${'ab'.repeat(32)}`, `4 2 ${'AB'.repeat(32)}`],
    ['URI', '_web', '10 1 "https://example.com/"', '10 1 "https://example.com/"'],
    ['TYPE65280', 'x', '\\# 2 abcd', '\\# 2 ABCD'],
    ['A', 'a\\.b', '192.0.2.1', '192.0.2.1'],
    ['HTTPS', '@', '1 . alpn="h2,h3"', expect.stringMatching(/^1 \. alpn=/)],
    ['MX', '@', '10 mail.example.com', '10 mail.example.com'],
    ['NS', 'sub', 'ns1.example.net', 'ns1.example.net'],
    ['SRV', '_sip._tcp', '0 5 5060 sip.example.com', '0 5 5060 sip.example.com'],
    ['SVCB', '_dns', '1 dns.example.com alpn="dot"', expect.stringMatching(/^1 dns\.example\.com alpn=/)],
    ['TLSA', '_443._tcp', `3 1 1 ${'cd'.repeat(32)}`, `3 1 1 ${'CD'.repeat(32)}`],
    ['TXT', '@', 'v=spf1 -all', '"v=spf1 -all"'],
  ])('a record of type %s is stored in canonical form and read back', async (type, name, value, stored) => {
    const zone = await newZone()
    const made = await create(zone, { type, name, value, ttl: 86_400, comment: 'by hand' })
    expect(made.status).toBe(201)
    if (typeof stored === 'string') expect(made.body.value.toUpperCase()).toBe(stored.toUpperCase())
    else expect(made.body.value).toEqual(stored)
    expect(made.body).toMatchObject({ ttl: 86_400, comment: 'by hand' })
    const read = await api.call('GET', `/dns/${zone}/records/${made.body.id}`)
    expect(read.body).toEqual(made.body)
    expect(read.headers.etag).toBeDefined()
  })

  test('names are taken relative, as @, in full, in upper case and in Unicode', async () => {
    const zone = await newZone()
    const named = async (name: string, value: string) =>
      (await create(zone.toUpperCase(), { type: 'A', name, value })).body.name
    expect(await named('@', '192.0.2.1')).toBe('@')
    expect(await named(zone, '192.0.2.2')).toBe('@')
    expect(await named(`WWW.${zone}.`, '192.0.2.3')).toBe('www')
    expect(await named('a.b', '192.0.2.4')).toBe('a.b')
    expect(await named('*.a', '192.0.2.5')).toBe('*.a')
    expect(await named('bücher', '192.0.2.6')).toBe('xn--bcher-kva')
    expect(await serialOf(zone)).toBe(7)
  })

  test.each([
    [{ type: 'SOA', name: '@', value: 'x' }, ['#/type']],
    [{ type: 'TYPE6', name: '@', value: '\\# 0' }, ['#/type']],
    [{ type: 'TYPE46', name: 'a b', value: '\\# 0' }, ['#/type', '#/name']],
    [{ type: 'TYPE65536', name: '@', value: '\\# 0' }, ['#/type']],
    [{ type: 'TYPE65280', name: 'x', value: 'abcd' }, ['#/value']],
    [{ type: 'DNAME', name: '*', value: 'a.example.net' }, ['#/name']],
    [{ type: 'A', name: 'a', value: '2001:db8::1' }, ['#/value']],
    [{ type: 'A', name: 'a b', value: '1.2.3' }, ['#/name', '#/value']],
    [{ type: 'A', name: 'x.example.org.', value: '192.0.2.1' }, ['#/name']],
    [{ type: 'A', name: 'a.*', value: '192.0.2.1' }, ['#/name']],
    [{ type: 'MX', name: '@', value: 'mail.example.com' }, ['#/value']],
    [{ type: 'NS', name: '@', value: 'ns1.example.net' }, ['#/name']],
    [{ type: 'NS', name: '*.a', value: 'ns1.example.net' }, ['#/name']],
    [{ type: 'DS', name: '@', value: `12345 13 2 ${'ab'.repeat(32)}` }, ['#/name']],
    [{ type: 'A', name: 'a', value: '192.0.2.1', ttl: 29 }, ['#/ttl']],
    [{ type: 'A', name: 'a', value: '192.0.2.1', ttl: 86_401 }, ['#/ttl']],
    [{ type: 'A', name: 'a', value: '192.0.2.1', ttl: '3600' }, ['#/ttl']],
    [{ type: 'A', name: 'a', value: '192.0.2.1', comment: 'x'.repeat(201) }, ['#/comment']],
    [{ type: 'A', name: 'a', value: '192.0.2.1', comment: 'x\ny' }, ['#/comment']],
    [{ type: 'A', name: 'a', value: '192.0.2.1', priority: 1 }, ['#/priority']],
  ])('%j is refused at %j and leaves the serial alone', async (body, pointers) => {
    const zone = await newZone()
    const { status, body: problem } = await create(zone, body)
    expect(status).toBe(422)
    expect(problem.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(pointers)
    expect(await serialOf(zone)).toBe(1)
  })
})

describe('conflicts', () => {
  test('the record in the way is named, and the serial stays', async () => {
    const zone = await newZone()
    const a = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body
    const cname = (await create(zone, { type: 'CNAME', name: 'c', value: 'a.example.net' })).body
    const alias = (await create(zone, { type: 'ALIAS', name: 'l', value: 'a.example.net' })).body
    const serial = await serialOf(zone)
    const refused: [Fields, { id: string }][] = [
      [{ type: 'A', name: 'a', value: '192.0.2.1', ttl: 60 }, a],
      [{ type: 'CNAME', name: 'a', value: 'b.example.net' }, a],
      [{ type: 'ALIAS', name: 'a', value: 'b.example.net' }, a],
      [{ type: 'TXT', name: 'c', value: 'x' }, cname],
      [{ type: 'CNAME', name: 'c', value: 'b.example.net' }, cname],
      [{ type: 'AAAA', name: 'l', value: '2001:db8::1' }, alias],
      [{ type: 'ALIAS', name: 'l', value: 'b.example.net' }, alias],
    ]
    for (const [body, { id }] of refused) {
      for (const headers of [{}, { 'idempotency-key': `${zone}${JSON.stringify(body)}` }]) {
        const answer = await create(zone, body, headers as Record<string, string>)
        expect(answer).toMatchObject({ status: 409, body: { code: 'record_conflict', record: { id } } })
      }
    }
    expect(await serialOf(zone)).toBe(serial)
    expect((await create(zone, { type: 'MX', name: 'l', value: '10 mail.example.net' })).status).toBe(201)
  })

  test('a type by its number is the type of that name, in lists too', async () => {
    const zone = await newZone()
    const { body } = await create(zone, { type: 'TYPE1', name: 'a', value: '\\# 4 c0000201' })
    expect(body).toMatchObject({ type: 'A', value: '192.0.2.1' })
    expect(await records(zone, '?type=TYPE1')).toEqual([body])
    expect(await records(zone, '?type=TYPE731')).toEqual([])
  })

  test('a record that points at itself is refused, also by a change', async () => {
    const zone = await newZone()
    const circle = { status: 422, body: { errors: [{ pointer: '#/value', code: 'points_at_itself' }] } }
    expect(await create(zone, { type: 'CNAME', name: 'a', value: `A.${zone}.` })).toMatchObject(circle)
    expect(await create(zone, { type: 'ALIAS', name: '@', value: '@' })).toMatchObject(circle)
    const { id } = (await create(zone, { type: 'CNAME', name: 'a', value: `b.${zone}` })).body
    expect(await api.call('PATCH', `/dns/${zone}/records/${id}`, { body: { name: 'b' } })).toMatchObject(circle)
  })

  type Step = [Fields, code?: string]
  const ds = `12345 13 2 ${'AB'.repeat(32)}`
  test.each<[string, Step[]]>([
    [
      'a null MX is the only MX',
      [
        [{ type: 'MX', name: '@', value: '0 .' }],
        [{ type: 'MX', name: '@', value: '10 mail.example.net' }, 'beside_null_mx'],
        [{ type: 'MX', name: 'a', value: '10 mail.example.net' }],
        [{ type: 'MX', name: 'a', value: '0 .' }, 'beside_null_mx'],
      ],
    ],
    [
      'a name has one SPF record',
      [
        [{ type: 'TXT', name: '@', value: 'v=spf1 -all' }],
        [{ type: 'TXT', name: '@', value: 'v=spf1 mx -all' }, 'second_spf'],
        [{ type: 'TXT', name: '@', value: 'something else' }],
        [{ type: 'TXT', name: 'a', value: 'v=spf1 mx -all' }],
      ],
    ],
    [
      'a DS needs an NS',
      [
        [{ type: 'DS', name: 'sub', value: ds }, 'ds_without_ns'],
        [{ type: 'NS', name: 'sub', value: 'ns1.example.net' }],
        [{ type: 'DS', name: 'sub', value: ds }],
      ],
    ],
    [
      'an MX does not point at a CNAME, nor is one made where it points',
      [
        [{ type: 'CNAME', name: 'mail', value: 'host.example.net' }],
        [{ type: 'MX', name: '@', value: '10 mail.ZONE' }, 'mx_at_cname'],
        [{ type: 'MX', name: '@', value: '10 mx.ZONE' }],
        [{ type: 'CNAME', name: 'mx', value: 'host.example.net' }, 'mx_at_cname'],
      ],
    ],
    [
      'nothing is below a DNAME, nor is one made above something',
      [
        [{ type: 'DNAME', name: 'old', value: 'example.net' }],
        [{ type: 'A', name: 'old', value: '192.0.2.1' }],
        [{ type: 'A', name: 'www.old', value: '192.0.2.1' }, 'below_dname'],
        [{ type: 'MX', name: 'a.b.old', value: '0 .' }, 'below_dname'],
        [{ type: 'A', name: 'a.b', value: '192.0.2.1' }],
        [{ type: 'DNAME', name: 'b', value: 'example.net' }, 'below_dname'],
        [{ type: 'DNAME', name: '@', value: 'example.net' }, 'below_dname'],
        [{ type: 'NS', name: 'old', value: 'ns.example.net' }, 'beside_dname'],
      ],
    ],
  ])('%s', async (_about, steps) => {
    const [zone, other] = [await newZone(), await newZone()]
    const within = ({ value, ...rest }: Fields, name: string) => ({ ...rest, value: value.replace('ZONE', name) })
    for (const [fields, code] of steps) {
      const { status, body } = await create(zone, within(fields, zone))
      expect([fields, status, code && body.code]).toEqual([fields, code ? 409 : 201, code && 'record_conflict'])
    }
    // The same all at once, without those that were refused, and then with each of them.
    const all = (refused: Step[]) => ({
      create: [...steps.filter(([, code]) => !code), ...refused].map(([fields]) => within(fields, other)),
    })
    const isLone = (step: Step) => step[1] !== undefined && step[1] !== 'ds_without_ns'
    for (const step of steps.filter(isLone)) {
      const { status, body } = await batch(other, all([step]))
      expect([status, body.errors[0].code]).toEqual([409, step[1]])
    }
    expect((await batch(other, all([]))).status).toBe(200)
  })

  test('the last NS stays as long as there is a DS', async () => {
    const zone = await newZone()
    const ns = (await create(zone, { type: 'NS', name: 'sub', value: 'ns1.example.net' })).body
    const signed = (await create(zone, { type: 'DS', name: 'sub', value: ds })).body
    const refused = { status: 409, body: { code: 'record_conflict', record: { id: signed.id } } }
    expect(await api.call('DELETE', `/dns/${zone}/records/${ns.id}`)).toMatchObject(refused)
    expect(await batch(zone, { delete: [ns.id] })).toMatchObject(refused)
    expect((await batch(zone, { delete: [ns.id, signed.id] })).status).toBe(200)
  })

  test('of two SPF records made at once, one is refused', async () => {
    const zone = await newZone()
    const make = (value: string) => create(zone, { type: 'TXT', name: '@', value })
    const answers = await Promise.all([make('v=spf1 a -all'), make('v=spf1 mx -all')])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
  })

  test('a record that is changed by SQL excludes what a new one would', async () => {
    const zone = await newZone()
    const made = async (type: string, name: string, value: string) =>
      (await create(zone, { type, name, value })).body.id
    await made('A', 'address', '192.0.2.1')
    await made('ALIAS', 'alias', 'a.example.net')
    await made('CNAME', 'cname', 'a.example.net')
    const text = await made('TXT', 'text', 'x')
    const update = (data: object) => api.db.dnsRecord.update({ where: { id: text }, data })
    for (const [type, name] of [
      ['CNAME', 'address'],
      ['ALIAS', 'address'],
      ['AAAA', 'alias'],
      ['ALIAS', 'alias'],
      ['TXT', 'cname'],
    ] as const) {
      await expect(update({ type, name })).rejects.toThrow('dns_record_exclusive')
    }
    for (const [type, name] of [
      ['TXT', 'alias'],
      ['CNAME', 'free'],
      ['AAAA', 'address'],
    ] as const) {
      expect(await update({ type, name })).toMatchObject({ type, name })
    }
  })

  test('a CNAME at the apex is a conflict whose message offers ALIAS', async () => {
    const { status, body } = await create(await newZone(), { type: 'CNAME', name: '@', value: 'a.example.net' })
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'record_conflict', detail: expect.stringContaining('ALIAS') })
    expect(body.record).toBeUndefined()
  })

  test('of a CNAME and an A made at the same moment one wins, and the other is told which', async () => {
    const zone = await newZone()
    for (let round = 0; round < 40; round++) {
      const name = `r${round}`
      const headers: Record<string, string> = round % 2 ? { 'idempotency-key': `${zone}-${name}` } : {}
      const answers = await Promise.all([
        create(zone, { type: 'CNAME', name, value: 'a.example.net' }),
        create(zone, { type: 'A', name, value: '192.0.2.1' }, headers),
      ])
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
      const [made, refused] = answers[0].status === 201 ? answers : [answers[1], answers[0]]
      expect(refused!.body.record?.id).toBe(made!.body.id)
    }
    expect(await serialOf(zone)).toBe(41)
  })

  test.each([
    ['CNAME', 'a.example.net', {}],
    ['CNAME', 'a.example.net', { 'idempotency-key': 'late-cname' }],
    ['A', '192.0.2.1', {}],
    ['A', '192.0.2.1', { 'idempotency-key': 'late-a' }],
  ])('a %s that is committed while a request waits for the zone is seen by it', async (type, value, headers) => {
    const zone = await newZone()
    const { id: domainId } = await api.db.domain.findFirstOrThrow({ where: { name: zone } })
    const row = { id: 'rec_first', domainId, type, name: 'late', value, ttl: 60 }
    let waiting: Promise<Answer> | undefined
    await api.db.$transaction(async (db) => {
      await db.dnsRecord.create({ data: { ...row, createdAt: new Date(), updatedAt: new Date() } })
      waiting = create(zone, { type: 'A', name: 'late', value: '192.0.2.1' }, headers)
      await until(() => waitsForLock(api.db))
    })
    expect(await waiting).toMatchObject({ status: 409, body: { code: 'record_conflict', record: { id: 'rec_first' } } })
    expect(await serialOf(zone)).toBe(1)
    await api.db.dnsRecord.delete({ where: { id: 'rec_first' } })
  })

  test('the same record made many times at once is made once', async () => {
    const zone = await newZone()
    for (let round = 0; round < 10; round++) {
      const body = { type: 'TXT', name: `d${round}`, value: 'same' }
      const answers = await Promise.all([1, 2, 3, 4].map(() => create(zone, body)))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    }
    expect(await serialOf(zone)).toBe(11)
  })

  test('concurrent records of one zone are all made, and the serial counts each', async () => {
    const zone = await newZone()
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) => create(zone, { type: 'A', name: 'many', value: `192.0.2.${n}` })),
    )
    expect(answers.every(({ status }) => status === 201)).toBe(true)
    expect(await serialOf(zone)).toBe(31)
  })

  test('an Idempotency-Key makes one record of two requests', async () => {
    const zone = await newZone()
    const headers = { 'idempotency-key': 'one-record' }
    const first = await create(zone, { type: 'A', name: 'k', value: '192.0.2.1' }, headers)
    const second = await create(zone, { type: 'A', name: 'k', value: '192.0.2.1' }, headers)
    expect(second.body).toEqual(first.body)
    expect(await serialOf(zone)).toBe(2)
  })
})

describe('reading and changing', () => {
  test('lists are by name, paged without gaps, and filtered by type and name', async () => {
    const zone = await newZone()
    for (const name of ['b', 'a', 'c', '@', 'b']) {
      await create(zone, { type: 'TXT', name, value: `${name}${Math.random()}` })
    }
    await create(zone, { type: 'A', name: 'b', value: '192.0.2.1' })
    const names = (list: { name: string }[]) => list.map(({ name }) => name)
    const all = names(await records(zone))
    expect(all).toHaveLength(6)
    expect(all).toEqual([...all].sort())
    expect(names(await records(zone, '?order=desc'))).toEqual([...all].reverse())
    let cursor = ''
    const paged: string[] = []
    do {
      const { body } = await api.call('GET', `/dns/${zone}/records?limit=2${cursor}`)
      paged.push(...names(body.records))
      cursor = body.hasMore && `&cursor=${body.nextCursor}`
    } while (cursor)
    expect(paged).toEqual(all)
    expect(await records(zone, '?type=A')).toHaveLength(1)
    expect(await records(zone, '?name=b')).toHaveLength(3)
    expect(await records(zone, `?name=B.${zone}.&type=TXT`)).toHaveLength(2)
    const bad = await api.call('GET', `/dns/${zone}/records?name=a..b`)
    expect(bad.body.errors).toMatchObject([{ in: 'query', pointer: '#/name' }])
    expect(await records(await newZone())).toEqual([])
  })

  test('a change is checked like a new record, keeps what is left out, and grows the serial by one', async () => {
    const zone = await newZone()
    const { id, createdAt } = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1', comment: 'x' })).body
    const path = `/dns/${zone}/records/${id}`
    const changed = await api.call('PATCH', path, { body: { value: '192.0.2.2', ttl: 60 } })
    expect(changed.body).toMatchObject({ id, name: 'a', value: '192.0.2.2', ttl: 60, comment: 'x', createdAt })
    expect((await api.call('GET', path)).body).toEqual(changed.body)
    expect(await serialOf(zone)).toBe(3)
    expect((await api.call('PATCH', path, { body: { ttl: 60 } })).body).toEqual(changed.body)
    expect(await serialOf(zone)).toBe(3)
    expect((await api.call('PATCH', path, { body: { name: 'b', comment: null } })).body).toMatchObject({
      name: 'b',
      comment: null,
    })
    expect(await eventsOf(id)).toEqual(['dns.record.created', 'dns.record.updated', 'dns.record.updated'])

    const { body: type } = await api.call('PATCH', path, { body: { type: 'TXT' } })
    expect(type.errors).toMatchObject([{ pointer: '#/type', code: 'unknown_field' }])
    const { body: value } = await api.call('PATCH', path, { body: { value: 'x' } })
    expect(value.errors).toMatchObject([{ pointer: '#/value' }])
    const other = (await create(zone, { type: 'CNAME', name: 'c', value: 'a.example.net' })).body
    const conflict = await api.call('PATCH', path, { body: { name: 'c' } })
    expect(conflict).toMatchObject({ status: 409, body: { record: { id: other.id } } })
    const apex = await api.call('PATCH', `/dns/${zone}/records/${other.id}`, { body: { name: '@' } })
    expect(apex).toMatchObject({ status: 409, body: { code: 'record_conflict' } })
    expect(await serialOf(zone)).toBe(5)
  })

  test('If-Match guards changes and deletions; a deletion grows the serial by one', async () => {
    const zone = await newZone()
    const { id } = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body
    const path = `/dns/${zone}/records/${id}`
    const { headers } = await api.call('GET', path)
    const current = { 'if-match': headers.etag! }
    expect((await api.call('PATCH', path, { body: { ttl: 60 }, headers: current })).status).toBe(200)
    expect((await api.call('PATCH', path, { body: { ttl: 90 }, headers: current })).status).toBe(412)
    expect((await api.call('DELETE', path, { headers: current })).status).toBe(412)
    expect((await api.call('DELETE', path)).status).toBe(204)
    expect((await api.call('DELETE', path)).status).toBe(404)
    expect(await serialOf(zone)).toBe(4)
    expect((await eventsOf(id)).at(-1)).toBe('dns.record.deleted')
  })

  test('zones of others, of other projects, of wildcards and records of other zones look absent', async () => {
    const zone = await newZone()
    const elsewhere = await newZone()
    const { id } = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body
    const stranger = await api.newAccount()
    const narrow = (await api.call('POST', '/tokens', { body: { name: 'n', scopes: ['*'], projects: ['other'] } })).body
    for (const token of [stranger.token, narrow.token ?? narrow.secret]) {
      const answers: Answer[] = [
        await api.call('GET', `/dns/${zone}/records`, { token }),
        await api.call('POST', `/dns/${zone}/records`, { token, body: { type: 'A', name: 'x', value: '192.0.2.1' } }),
        await api.call('POST', `/dns/${zone}/records`, { token, body: { type: 'A', name: 'x', value: 'bad' } }),
        await api.call('POST', `/dns/${zone}/records/batch`, { token, body: { delete: [id] } }),
        await api.call('GET', `/dns/${zone}/records/${id}`, { token }),
        await api.call('PATCH', `/dns/${zone}/records/${id}`, { token, body: { ttl: 60 } }),
        await api.call('DELETE', `/dns/${zone}/records/${id}`, { token }),
      ]
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404))
    }
    expect((await api.call('GET', `/dns/${elsewhere}/records/${id}`)).status).toBe(404)
    expect((await api.call('GET', '/dns/-bad-/records')).status).toBe(404)
    const reader = (await api.call('POST', '/tokens', { body: { name: 'r', scopes: ['dns:read'] } })).body
    const token = reader.token ?? reader.secret
    expect((await api.call('GET', `/dns/${zone}/records`, { token })).status).toBe(200)
    expect((await api.call('DELETE', `/dns/${zone}/records/${id}`, { token })).status).toBe(403)
  })
})

describe('batches', () => {
  test('deletes, updates and creates as one change, where only the result counts', async () => {
    const zone = await newZone()
    const a = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body
    const b = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.2' })).body
    const old = (await create(zone, { type: 'CNAME', name: 'www', value: 'old.example.net' })).body
    const { status, body } = await batch(zone, {
      delete: [old.id],
      update: [
        { id: a.id, value: '192.0.2.2' },
        { id: b.id, value: '192.0.2.1' },
      ],
      create: [{ type: 'A', name: 'www', value: '192.0.2.3' }],
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      dryRun: false,
      deleted: [{ id: old.id }],
      updated: [
        { before: a, after: { id: a.id, value: '192.0.2.2' } },
        { before: b, after: { id: b.id, value: '192.0.2.1' } },
      ],
      created: [{ name: 'www', type: 'A', ttl: 300 }],
      serial: 5,
    })
    expect(await serialOf(zone)).toBe(5)
    expect(await records(zone)).toEqual([body.updated[0].after, body.updated[1].after, body.created[0]])
    expect(await eventsOf(a.id)).toEqual(['dns.record.created', 'dns.record.updated'])
  })

  test('one wrong operation refuses them all, and every wrong one is named by its index', async () => {
    const zone = await newZone()
    const a = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body
    const { status, body } = await batch(zone, {
      delete: ['rec_absent', a.id],
      update: [{ id: a.id, ttl: 60 }],
      create: [
        { type: 'A', name: 'ok', value: '192.0.2.1' },
        { type: 'A', name: 'bad', value: 'x' },
        { type: 'NS', name: '@', value: 'ns1.example.net' },
      ],
    })
    expect(status).toBe(422)
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual([
      '#/delete/0',
      '#/update/0/id',
      '#/create/1/value',
      '#/create/2/name',
    ])
    expect(await records(zone)).toEqual([a])
    expect(await serialOf(zone)).toBe(2)
  })

  test('a conflict is 409 with index and record, also among the operations themselves', async () => {
    const zone = await newZone()
    const a = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body
    const stored = await batch(zone, { create: [{ type: 'CNAME', name: 'a', value: 'b.example.net' }] })
    expect(stored).toMatchObject({
      status: 409,
      body: { record: { id: a.id }, errors: [{ pointer: '#/create/0', code: 'beside_cname' }] },
    })
    const among = await batch(zone, {
      create: [
        { type: 'CNAME', name: 'b', value: 'b.example.net' },
        { type: 'TXT', name: 'b', value: 'x' },
      ],
    })
    expect(among).toMatchObject({ status: 409, body: { errors: [{ pointer: '#/create/1' }] } })
    expect(among.body.record).toBeUndefined()
    expect(await serialOf(zone)).toBe(2)
  })

  test('a dry run tells the same and stores nothing', async () => {
    const zone = await newZone()
    const a = (await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })).body
    const body = { delete: [a.id], create: [{ type: 'CNAME', name: 'a', value: 'b.example.net' }] }
    const dry = await batch(zone, body, '?dryRun=true')
    expect(dry.body).toMatchObject({ dryRun: true, deleted: [a], created: [{ id: null, type: 'CNAME' }], serial: 2 })
    expect(await records(zone)).toEqual([a])
    const real = await batch(zone, body)
    expect(real.body).toMatchObject({ dryRun: false, deleted: [a], created: [{ type: 'CNAME' }], serial: 3 })
  })

  test('a batch takes 1,000 operations and not one more, and an empty one changes nothing', async () => {
    const zone = await newZone()
    const creates = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ type: 'A', name: `n${n}`, value: '192.0.2.1' }))
    const refused = await batch(zone, { create: creates(1000), delete: ['rec_x'] })
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: '#', code: 'too_long' }] } })
    const made = await batch(zone, { create: creates(1000) })
    expect(made.body.created).toHaveLength(1000)
    expect(await serialOf(zone)).toBe(2)
    expect((await batch(zone, { create: [] })).body.serial).toBe(2)
    expect((await batch(zone, {})).status).toBe(422)
  })
})
