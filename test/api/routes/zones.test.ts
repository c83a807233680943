import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readSoaAnswer, soaQuery } from '../../../src/dns/soa-probe.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let nameserver: Socket
/** What the nameserver of the test answers; null keeps it silent. */
let respond: (query: Buffer) => Buffer | null = () => null

beforeAll(async () => {
  nameserver = createSocket('udp4')
  nameserver.bind(0, '127.0.0.1')
  await once(nameserver, 'listening')
  nameserver.on('message', (query, from) => {
    const answer = respond(query)
    if (answer) nameserver.send(answer, from.port, from.address)
  })
  const closed = createSocket('udp4').bind(0, '127.0.0.1')
  await once(closed, 'listening')
  const listen = `127.0.0.1:${nameserver.address().port},127.0.0.1:${closed.address().port}`
  closed.close()
  api = await startApi({ NAMESERVER_LISTEN: listen, EDGE_ADDRESSES: '198.51.100.7,2001:db8::7' })
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
})
afterAll(async () => {
  nameserver.close()
  await api.stop()
})

let zones = 0
async function newZone(): Promise<string> {
  const name = `zone${++zones}.example.com`
  await api.call('POST', '/domains', { body: { project: 'site', name } })
  return name
}

const put = (zone: string, body: string | Buffer, query = '', type = 'text/dns') =>
  api.call('PUT', `/dns/${zone}/zone${query}`, { body, headers: { 'content-type': type, 'if-match': '*' } })
const exported = async (zone: string) => (await api.call('GET', `/dns/${zone}/zone`)).text
const create = async (zone: string, body: object) => (await api.call('POST', `/dns/${zone}/records`, { body })).body
const records = async (zone: string) => (await api.call('GET', `/dns/${zone}/records?limit=100`)).body.records
const serialOf = async (zone: string) => (await api.db.domain.findFirstOrThrow({ where: { name: zone } })).serial

async function fill(zone: string): Promise<void> {
  const values: [string, string, string][] = [
    ['ALIAS', '@', 'target.example.net'],
    ['MX', '@', '10 mail.example.net'],
    ['TXT', '@', 'v=spf1 -all; "quoted" \u00fcber'],
    ['TXT', 'long', 'x'.repeat(700)],
    ['CNAME', 'c', 'www.example.net'],
    ['SRV', '_sip._tcp', '0 5 5060 sip.example.net'],
    ['CAA', '@', '0 issue "letsencrypt.org"'],
    ['HTTPS', '@', '1 . alpn="h2,h3"'],
    ['NS', 'sub', 'ns1.example.net'],
    ['A', '*.w', '192.0.2.9'],
  ]
  for (const [type, name, value] of values) await create(zone, { type, name, value, comment: `about  ${name}; ok` })
  await create(zone, { type: 'A', name: 'mixed', value: '192.0.2.1', ttl: 600 })
  await create(zone, { type: 'A', name: 'mixed', value: '192.0.2.2', ttl: 60 })
}

describe('export', () => {
  test('a zone is a BIND zone file with SOA, nameservers, and the addresses of the edge as comments', async () => {
    const zone = await newZone()
    const { status, headers, text } = await api.call('GET', `/dns/${zone}/zone`)
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/dns; charset=utf-8')
    expect(text).toContain(`$ORIGIN ${zone}.`)
    expect(text).toMatch(/SOA +ns1\.berth\.test\. hostmaster\.\S+ 1 600 300 604800 60\n/)
    expect(text).toMatch(/^@ .* NS +ns2\.berth\.test\.$/m)
    for (const line of [/^; @ +60 +IN A +198/m, /^; @ +60 +IN AAAA +2001/m, /^; www +60 +IN A +198/m]) {
      expect(text).toMatch(line)
    }
    await create(zone, { type: 'CNAME', name: 'www', value: 'a.example.net' })
    expect(await exported(zone)).not.toMatch(/^; www/m)
    const again = await api.call('GET', `/dns/${zone}/zone`)
    const known = { 'if-none-match': again.headers.etag! }
    expect((await api.call('GET', `/dns/${zone}/zone`, { headers: known })).status).toBe(304)
  })

  test('importing the export changes nothing: same ids, same serial', async () => {
    const zone = await newZone()
    await fill(zone)
    const before = await records(zone)
    const serial = await serialOf(zone)
    const { status, body } = await put(zone, await exported(zone))
    expect(status).toBe(200)
    expect(body).toMatchObject({ dryRun: false, created: 0, updated: 0, deleted: 0, unchanged: 12, serial })
    expect(await records(zone)).toEqual(before)
    expect(await serialOf(zone)).toBe(serial)
  })

  test('the export of one zone fills another', async () => {
    const [from, to] = [await newZone(), await newZone()]
    await fill(from)
    const { body } = await put(to, (await exported(from)).replaceAll(from, to))
    expect(body).toMatchObject({ created: 12, serial: 2 })
    const facts = async (zone: string) =>
      (await records(zone)).map(({ type, name, value }: Record<string, string>) => `${name} ${type} ${value}`).sort()
    expect(await facts(to)).toEqual(await facts(from))
  })
})

describe('import', () => {
  const file = (zone: string) => `$TTL 1h
$ORIGIN ${zone}.
@   IN SOA ns1.old.example. hostmaster.old.example. ( 2026111401 ; serial
        7200 3600 1209600 300 )
    IN NS  ns1.old.example.
    IN MX  10 mail
    IN TXT "v=spf1 mx -all"
mail 2h IN A 192.0.2.25
mail 2h IN A 192.0.2.25
www  5  A  192.0.2.80   ; the web
sub  NS ns1.sub
ns1.sub A 192.0.2.53
www.sub A 192.0.2.81
other.example.org. A 192.0.2.1
loc  LOC 52 22 23 N 4 53 32 E -2m
old  APL 1:192.0.2.0/24
`

  test('a file written by hand is imported, and what is not is told', async () => {
    const zone = await newZone()
    const dry = await put(zone, file(zone), '?dryRun=true&skipUnsupported=true')
    expect(dry.body).toMatchObject({ dryRun: true, created: 8, serial: 1 })
    expect(dry.body.changes.created.every(({ id }: { id: null }) => id === null)).toBe(true)
    expect(await records(zone)).toEqual([])
    for (const query of ['', '?dryRun=true']) {
      const refused = await put(zone, file(zone), query)
      expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/lines/16', code: 'unsupported' }] } })
      expect(refused.body.detail).toContain('skipUnsupported=true')
    }
    const { body } = await put(zone, file(zone), '?skipUnsupported=true', 'text/plain; charset=utf-8')
    expect(body).toMatchObject({ dryRun: false, created: 8, updated: 0, deleted: 0, serial: 2, truncated: false })
    expect(body.skipped).toMatchObject([
      { line: 3, reason: 'soa' },
      { line: 5, reason: 'apex_ns' },
      { line: 9, reason: 'duplicate' },
      { line: 14, reason: 'out_of_zone' },
      { line: 16, reason: 'unsupported_type', detail: expect.stringContaining('APL') },
    ])
    expect(body.notes.map(({ line }: { line: number }) => line)).toEqual([10])
    expect(body.lineCounts).toEqual({ imported: 7, changed: 1, skipped: 5 })
    const results = body.lines.map(
      ({ line, lastLine, result }: Record<string, unknown>) => `${line}-${lastLine} ${result}`,
    )
    expect(results).toEqual([
      ...['3-4 skipped', '5-5 skipped', '6-8 imported', '9-9 skipped', '10-10 changed', '11-13 imported'],
      ...['14-14 skipped', '15-15 imported', '16-16 skipped'],
    ])
    expect(body.hidden).toEqual([{ name: 'www.sub', type: 'A', value: '192.0.2.81', delegation: 'sub' }])
    const made = await records(zone)
    expect(made).toContainEqual(expect.objectContaining({ name: '@', type: 'MX', value: `10 mail.${zone}`, ttl: 3600 }))
    expect(made).toContainEqual(expect.objectContaining({ name: 'www', ttl: 30, comment: 'the web' }))
  })

  test('the zone becomes what the file says: kept records keep their ids, the rest goes or comes', async () => {
    const zone = await newZone()
    const kept = await create(zone, { type: 'A', name: 'kept', value: '192.0.2.1' })
    const slow = await create(zone, { type: 'A', name: 'slow', value: '192.0.2.1', comment: 'mine' })
    const gone = await create(zone, { type: 'A', name: 'gone', value: '192.0.2.1' })
    const text = `kept 300 A 192.0.2.1\nslow 900 A 192.0.2.1\nnew 300 A 192.0.2.1 ; fresh\n`
    const { body } = await put(zone, text)
    expect(body).toMatchObject({ created: 1, updated: 1, deleted: 1, unchanged: 1, serial: 5 })
    expect(body.changes).toMatchObject({
      deleted: [gone],
      updated: [{ before: slow, after: { id: slow.id, ttl: 900, comment: 'mine' } }],
      created: [{ name: 'new', comment: 'fresh' }],
    })
    expect(await records(zone)).toContainEqual(kept)
    const events = await api.db.event.findMany({ where: { subject: { in: [zone, gone.id, slow.id, kept.id] } } })
    expect(events.map(({ type }) => type).sort()).toEqual([
      ...['dns.record.created', 'dns.record.created', 'dns.record.created'],
      'dns.zone.imported',
      'domain.created',
    ])
    const counts = { created: 1, updated: 1, deleted: 1, unchanged: 1, skipped: 0 }
    expect(events.find(({ type }) => type === 'dns.zone.imported')!.data).toEqual({
      domain: zone,
      ...counts,
      serial: 5,
    })
  })

  test('a lower ttl of one record of a set is taken over when the set would answer otherwise', async () => {
    const zone = await newZone()
    await create(zone, { type: 'A', name: 'a', value: '192.0.2.1', ttl: 60 })
    const left = await create(zone, { type: 'A', name: 'a', value: '192.0.2.2', ttl: 600 })
    await put(zone, 'a 60 A 192.0.2.2\n')
    expect(await records(zone)).toMatchObject([{ id: left.id, ttl: 60 }])
  })

  test('every line that cannot be imported is named, and nothing is stored', async () => {
    const zone = await newZone()
    const old = await create(zone, { type: 'A', name: 'old', value: '192.0.2.1' })
    const text = `a A 192.0.2.1\nb A nonsense\na CNAME c.example.net.\n@ CNAME d.example.net.\ne WHAT 1\n`
    const { status, body } = await put(zone, text)
    expect(status).toBe(422)
    const pointers = body.errors.map(({ pointer }: { pointer: string }) => pointer)
    expect(pointers.sort()).toEqual(['#/lines/2', '#/lines/3', '#/lines/4', '#/lines/5'])
    expect(await records(zone)).toEqual([old])
    expect(await serialOf(zone)).toBe(2)
  })

  test('a file without a record of the zone does not empty it', async () => {
    const zone = await newZone()
    expect((await put(zone, '; nothing\n')).body).toMatchObject({ created: 0, serial: 1 })
    await create(zone, { type: 'A', name: 'old', value: '192.0.2.1' })
    const { status, body } = await put(zone, '$ORIGIN example.org.\nwww A 192.0.2.1\n')
    expect(status).toBe(422)
    expect(body.errors).toMatchObject([{ code: 'no_records' }])
    expect(await records(zone)).toHaveLength(1)
  })

  test('other media types are 415, bytes that are no zone file and an empty body 422, too much 413, no zone 404', async () => {
    const zone = await newZone()
    for (const type of ['application/json', 'application/octet-stream', 'text/html']) {
      expect((await put(zone, '{}', '', type)).status).toBe(415)
    }
    expect((await put(zone, Buffer.from([0x61, 0xff, 0xfe]))).status).toBe(422)
    for (const type of ['text/plain', 'TEXT/DNS', 'text/plain; charset=us-ascii', 'text/dns;charset=utf-8']) {
      expect((await put(zone, 'a A 192.0.2.1\n', '?dryRun=true', type)).status).toBe(200)
    }
    expect((await put(zone, 'a A 192.0.2.1\n', '', 'application/x-www-form-urlencoded')).body.detail).toContain(
      'text/plain',
    )
    expect((await put(zone, '')).status).toBe(422)
    const limit = 16 * 1024 * 1024
    expect((await put(zone, ';'.repeat(limit + 1))).status).toBe(413)
    expect((await put(zone, `;${'x'.repeat(limit - 2)}\n`)).status).toBe(200)
    expect((await put('absent.example.com', 'nonsense')).status).toBe(404)
    const stranger = await api.newAccount()
    const options = { token: stranger.token, body: 'a A 192.0.2.1', headers: { 'content-type': 'text/dns' } }
    expect((await api.call('PUT', `/dns/${zone}/zone`, options)).status).toBe(404)
    expect((await api.call('GET', `/dns/${zone}/zone`, { token: stranger.token })).status).toBe(404)
    expect((await api.call('GET', `/dns/${zone}/zone/status`, { token: stranger.token })).status).toBe(404)
  })

  test('records of every type are imported, exported and imported again without a change', async () => {
    const zone = await newZone()
    const lines = [
      ...['@ CAA 0 issue "a.example"', '@ HTTPS 1 . alpn=h2 ohttp tls-supported-groups=29,23', 'p PTR h.example.net.'],
      ...[
        'n NAPTR 1 1 "u" "E2U+sip" "!^.*$!sip:a@b.example!" .',
        `s SSHFP 4 2 ${'AB'.repeat(32)}`,
        'h HINFO "PC" "BSD"',
      ],
      ...[
        'l LOC 52 22 23 N 4 53 32 E -2m',
        'u URI 10 1 "https://a.example/"',
        'k OPENPGPKEY mQINBFUo',
        'd DNAME b.example.net.',
      ],
      ...[`m SMIMEA 3 0 1 ${'CD'.repeat(32)}`, 'c CERT PGP 0 0 mQIN', 'x CDS 0 0 0 00', 'x CDNSKEY 0 3 0 AA=='],
      ...[
        't TYPE65280 \\# 3 abcdef',
        'r RP admin.example.net. .',
        'a\\.b A 192.0.2.1',
        '$GENERATE 1-20 g$ A 192.0.2.$',
      ],
    ]
    const made = await put(zone, `$TTL 600\n${lines.join('\n')}\n`)
    expect(made.body).toMatchObject({ created: 37, skipped: [], notes: [], lineCounts: { imported: 18 } })
    const file = await exported(zone)
    expect(file).not.toMatch(/ {2}/)
    expect((await put(zone, file)).body).toMatchObject({ created: 0, deleted: 0, updated: 0, unchanged: 37 })
  })

  test('lines that used to refuse a whole file are told one by one', async () => {
    const zone = await newZone()
    const file = Buffer.from(
      'a A 192.0.2.1 ; caf\u00e9\nversion.bind. CH TXT "x"\n$INCLUDE other.zone\nb\\.c A 192.0.2.2\n' +
        '$GENERATE 1-2 h$ A 192.0.2.$\nd 1 A 192.0.2.3\n',
      'latin1',
    )
    const refused = await put(zone, file)
    expect(refused.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(['#/lines/2', '#/lines/3'])
    const { body } = await put(zone, file, '?skipUnsupported=true')
    expect(body).toMatchObject({
      created: 5,
      skipped: [
        { line: 2, reason: 'other_class' },
        { line: 3, reason: 'include' },
      ],
    })
    expect(body.notes.map(({ line }: { line: number }) => line).sort()).toEqual([1, 6])
    expect(await records(zone)).toContainEqual(expect.objectContaining({ name: 'a', comment: 'café' }))
    expect(await records(zone)).toContainEqual(expect.objectContaining({ name: 'd', ttl: 300 }))
  })

  test('records that cannot stand together are refused line by line', async () => {
    const zone = await newZone()
    const lines = [
      ...['@ MX 0 .', '@ MX 10 m.example.net.', '@ TXT "v=spf1 -all"', '@ TXT "v=spf1 mx -all"', 'a CNAME a'],
      ...[
        `s DS 1 8 2 ${'AB'.repeat(32)}`,
        'b MX 10 c',
        'c CNAME d.example.net.',
        'e DNAME f.example.net.',
        'g.e A 192.0.2.1',
      ],
    ]
    const { status, body } = await put(zone, lines.join('\n'))
    expect(status).toBe(422)
    const codes = body.errors.map(({ pointer, code }: Record<string, string>) => `${pointer!.slice(8)} ${code}`).sort()
    expect(codes).toEqual([
      ...['10 below_dname', '2 beside_null_mx', '4 second_spf', '5 bad_format', '6 ds_without_ns', '7 mx_at_cname'],
    ])
  })

  test('the first import of a zone takes few statements, of which four hold it', async () => {
    const zone = await newZone()
    const query = vi.spyOn(pg.Client.prototype, 'query')
    const { body } = await put(zone, 'a 300 A 192.0.2.1\nb 300 A 192.0.2.2')
    const texts = (query.mock.calls as unknown as [string | { text: string }][]).map(([asked]) =>
      typeof asked === 'string' ? asked : asked.text,
    )
    query.mockRestore()
    expect(body).toMatchObject({ created: 2, serial: 2 })
    const lock = texts.findIndex((text) => /FROM domain d.*FOR NO KEY UPDATE/s.test(text))
    expect(texts.slice(lock)).toHaveLength(4)
    expect(texts.length).toBeLessThanOrEqual(8)
    // The event names the serial that the zone has.
    const event = await api.db.event.findFirstOrThrow({ where: { subject: zone, type: 'dns.zone.imported' } })
    expect(event.data).toMatchObject({ created: 2, serial: 2 })
  })
})

/** A nameserver's answer to a query of ours: the question again, then one SOA whose names are pointers. */
function soaAnswer(query: Buffer, serial: number): Buffer {
  const answer = Buffer.concat([query, Buffer.alloc(12 + 4 + 20)])
  answer.writeUInt16BE(0x8400, 2)
  answer.writeUInt16BE(1, 6)
  let at = query.length
  for (const value of [0xc00c, 6, 1, 0, 60, 24, 0xc00c, 0xc00c]) at = answer.writeUInt16BE(value, at)
  answer.writeUInt32BE(serial, at)
  return answer
}

describe('status', () => {
  test('it tells the serial of the database and of each nameserver', async () => {
    const zone = await newZone()
    await create(zone, { type: 'A', name: 'a', value: '192.0.2.1' })
    respond = (query) => soaAnswer(query, 2)
    const { body } = await api.call('GET', `/dns/${zone}/zone/status`)
    expect(body).toMatchObject({
      domain: zone,
      serial: 2,
      nameservers: [
        { name: 'ns1.berth.test', serial: 2, current: true, error: null },
        { name: 'ns2.berth.test', serial: null, current: false, error: 'refused' },
      ],
    })
    const notify = ['192.0.2.53']
    await api.call('POST', `/dns/${zone}/keys`, { body: { name: 'own', purpose: 'transfer', notify } })
    const own = (await api.call('GET', `/dns/${zone}/zone/status`)).body.secondaries
    const unknown = { serial: null, behind: null, error: null, reason: null, since: null, checkedAt: null }
    expect(own).toEqual([{ address: '192.0.2.53:53', current: false, ...unknown }])
    respond = (query) => soaAnswer(query, 1)
    const behind = await api.call('GET', `/dns/${zone}/zone/status`)
    expect(behind.body.nameservers[0]).toMatchObject({ serial: 1, current: false, error: 'behind', since: null })
    expect(behind.body.nameservers[0].reason).toMatch(/being transferred/)
  })

  test('silence is a timeout, a refusal is not_served, and a broken answer is neither believed nor fatal', async () => {
    const zone = await newZone()
    const first = async () => (await api.call('GET', `/dns/${zone}/zone/status`)).body.nameservers[0].error
    respond = () => null
    expect(await first()).toBe('timeout')
    const flagged = (query: Buffer, flags: number) => {
      const answer = Buffer.from(query)
      answer.writeUInt16BE(flags, 2)
      return answer
    }
    respond = (query) => flagged(query, 0x8005)
    expect(await first()).toBe('not_served')
    respond = (query) => soaAnswer(query, 7).subarray(0, -3)
    expect(await first()).toBe('invalid_answer')
    // Another id, or another question: not for us.
    respond = (query) => {
      const answer = soaAnswer(query, 7)
      answer.writeUInt16BE(answer.readUInt16BE(0) ^ 1, 0)
      return answer
    }
    expect(await first()).toBe('timeout')
  })

  test('no answer, however cut or filled, makes the reader throw or loop', () => {
    const query = soaQuery('example.com', 4242)
    const good = soaAnswer(query, 99)
    expect(readSoaAnswer(good, query)).toEqual({ serial: 99, error: null })
    for (let length = 12; length < good.length; length++) {
      expect(readSoaAnswer(good.subarray(0, length), query)?.serial ?? null).toBeNull()
    }
    let seed = 1
    for (let round = 0; round < 20_000; round++) {
      const bent = Buffer.from(good)
      for (let n = 0; n < 3; n++) {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
        bent[2 + (seed % (bent.length - 2))] = (seed >> 8) & 255
      }
      readSoaAnswer(bent, query)
    }
  })
})

describe('the version of a zone', () => {
  const file = 'a 300 A 192.0.2.1\n'
  const replace = (zone: string, headers: Record<string, string> = {}, query = '') =>
    api.call('PUT', `/dns/${zone}/zone${query}`, { body: file, headers: { 'content-type': 'text/dns', ...headers } })
  const versionOf = async (zone: string) => (await api.call('GET', `/dns/${zone}/zone`)).headers.etag!

  test('an empty zone needs none; one with records is not replaced without', async () => {
    const zone = await newZone()
    expect((await replace(zone)).status).toBe(200)
    await create(zone, { type: 'A', name: 'b', value: '192.0.2.2' })
    const refused = await replace(zone)
    expect([refused.status, refused.body.code]).toEqual([428, 'precondition_required'])
    expect(refused.headers.etag).toBe(await versionOf(zone))
    expect(refused.body.detail).toContain(refused.headers.etag)
    expect(await records(zone)).toHaveLength(2)
    expect((await replace(zone, { 'if-match': refused.headers.etag! })).status).toBe(200)
    expect(await records(zone)).toHaveLength(1)
    expect((await replace(zone, { 'if-match': '*' })).status).toBe(200)
  })

  test('a trial changes nothing and needs none, but refuses a wrong one', async () => {
    const zone = await newZone()
    await create(zone, { type: 'A', name: 'b', value: '192.0.2.2' })
    expect((await replace(zone, {}, '?dryRun=true')).status).toBe(200)
    expect((await replace(zone, { 'if-match': '"old"' }, '?dryRun=true')).status).toBe(412)
  })

  test('every change of a record makes another one, and what was read before it replaces nothing', async () => {
    const zone = await newZone()
    const { id } = await create(zone, { type: 'A', name: 'b', value: '192.0.2.2' })
    const seen = await versionOf(zone)
    await api.call('PATCH', `/dns/${zone}/records/${id}`, { body: { comment: 'mine' } })
    const late = await replace(zone, { 'if-match': seen })
    expect([late.status, late.body.code]).toEqual([412, 'precondition_failed'])
    expect(await records(zone)).toMatchObject([{ id, comment: 'mine' }])
  })

  test('of two who replace the same version at once, one is refused', async () => {
    const zone = await newZone()
    await create(zone, { type: 'A', name: 'b', value: '192.0.2.2' })
    const headers = { 'if-match': await versionOf(zone) }
    const answers = await Promise.all([replace(zone, headers), replace(zone, headers)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
  })

  test('nor is a large zone replaced without one', async () => {
    const zone = await newZone()
    const text = Array.from({ length: 300 }, (_, i) => `h${i} 300 A 192.0.2.1`).join('\n')
    expect((await put(zone, text)).status).toBe(200)
    const refused = await replace(zone)
    expect([refused.status, refused.headers.etag]).toEqual([428, await versionOf(zone)])
    expect((await replace(zone, { 'if-match': '"old"' })).status).toBe(412)
    expect((await replace(zone, { 'if-match': refused.headers.etag! })).status).toBe(200)
  })
})
