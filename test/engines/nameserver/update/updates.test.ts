// Updates by RFC 2136: prerequisites, atomicity, codes, who may do what, and that nothing is done twice.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readTsig, type Tsig, tsigErrors } from '../../../../src/dns/packet/tsig.ts'
import { until } from '../../../helpers/until.ts'
import { askUdp, framed, nameOctets, sendTcp, sendUdp } from '../packets.ts'
import {
  absent,
  add,
  addAddress,
  addressData,
  addText,
  exists,
  type Key,
  nameData,
  nowSeconds,
  rcodeOf,
  remove,
  sign,
  startUpdates,
  textData,
  type UpdateWorld,
  updateMessage,
} from './world.ts'

let world: UpdateWorld
beforeAll(async () => {
  world = await startUpdates()
})
afterAll(() => world?.stop())

let zones = 0
async function newZone(): Promise<{ zone: string; key: Key }> {
  const zone = `up${++zones}.com`
  await world.newDomain(zone)
  return { zone, key: await world.newKey(zone) }
}
const serialOf = async (zone: string) => (await world.db.domain.findFirstOrThrow({ where: { name: zone } })).serial

describe('an update', () => {
  test('adds and deletes records, raises the serial once, and is answered by the nameserver', async () => {
    const { zone, key } = await newZone()
    const before = await serialOf(zone)
    const updates = [addAddress(`www.${zone}`, '192.0.2.1'), addText(`_acme-challenge.${zone}`, 'abc', 60)]
    expect(await world.update(key, { updates })).toBe('NOERROR')
    expect(await world.recordsOf(zone)).toEqual(['_acme-challenge TXT "abc"', 'www A 192.0.2.1'])
    expect(await serialOf(zone)).toBe(before + 1)
    await until(async () => (await askUdp(world.ports[1]!, `www.${zone}`, 'A')).answer.length === 1)
    const events = await world.db.event.findMany({ where: { actor: key.id } })
    expect(events.map(({ type }) => type)).toEqual(['dns.record.created', 'dns.record.created'])
    const gone = {
      updates: [remove(`www.${zone}`, 'A', addressData('192.0.2.1')), remove(`_acme-challenge.${zone}`, 'TXT')],
    }
    expect(await world.update(key, { ...gone, tcp: true })).toBe('NOERROR')
    expect(await world.recordsOf(zone)).toEqual([])
    const { body } = await world.call('GET', `/dns/${zone}/keys/${key.id}`)
    expect(Date.parse(body.lastUsedAt)).toBeGreaterThan(Date.parse(body.createdAt) - 1)
  })

  test('is done in its order, and what ends where it began changes nothing', async () => {
    const { zone, key } = await newZone()
    const at = `x.${zone}`
    await world.update(key, { updates: [addText(at, 'a'), addText(at, 'b')] })
    const rows = await world.db.dnsRecord.findMany({ where: { domain: { name: zone } }, orderBy: { id: 'asc' } })
    const before = await serialOf(zone)
    expect(await world.update(key, { updates: [remove(at), addText(at, 'b'), addText(at, 'a')] })).toBe('NOERROR')
    expect(await world.db.dnsRecord.findMany({ where: { domain: { name: zone } }, orderBy: { id: 'asc' } })).toEqual(
      rows,
    )
    expect(await serialOf(zone)).toBe(before)
    expect(await world.update(key, { updates: [addText(at, 'c'), remove(at, 'TXT'), addText(at, 'd', 60)] })).toBe(
      'NOERROR',
    )
    expect(await world.recordsOf(zone)).toEqual(['x TXT "d"'])
  })

  test('of a record that is there changes its TTL, and that of its set', async () => {
    const { zone, key } = await newZone()
    await world.update(key, { updates: [addText(`x.${zone}`, 'a'), addText(`x.${zone}`, 'b')] })
    expect(await world.update(key, { updates: [addText(`x.${zone}`, 'a', 77)] })).toBe('NOERROR')
    const rows = await world.db.dnsRecord.findMany({ where: { domain: { name: zone } } })
    expect(rows.map(({ ttl }) => ttl)).toEqual([77, 77])
  })

  test('with a TTL beyond the limits gets the nearest one, as an import does', async () => {
    const { zone, key } = await newZone()
    // RFC 2181, section 8: a TTL of 32 bits counts as zero.
    for (const [name, ttl] of Object.entries({ none: 0, short: 29, long: 86_401, odd: 0x8000_0000 })) {
      expect(await world.update(key, { updates: [addText(`${name}.${zone}`, 'a', ttl)] }), name).toBe('NOERROR')
    }
    const rows = await world.db.dnsRecord.findMany({ where: { domain: { name: zone } } })
    expect(Object.fromEntries(rows.map(({ name, ttl }) => [name, ttl]))).toEqual({
      none: 30,
      short: 30,
      long: 86_400,
      odd: 30,
    })
  })

  test('leaves a CNAME and other records apart without a word, and replaces a CNAME', async () => {
    const { zone, key } = await newZone()
    const alias = (target: string) => add(`c.${zone}`, 'CNAME', nameData(target))
    await world.update(key, { updates: [alias('one.example.net'), addText(`t.${zone}`, 'a')] })
    expect(await world.update(key, { updates: [addText(`c.${zone}`, 'beside')] })).toBe('NOERROR')
    expect(await world.update(key, { updates: [add(`t.${zone}`, 'CNAME', nameData('x.example.net'))] })).toBe('NOERROR')
    expect(await world.update(key, { updates: [alias('two.example.net')] })).toBe('NOERROR')
    expect(await world.recordsOf(zone)).toEqual(['c CNAME two.example.net', 't TXT "a"'])
  })

  test('reads names in rdata that are compressed, in any case of letters', async () => {
    const { zone, key } = await newZone()
    // A pointer to the name of the zone, at octet 12.
    const data = Buffer.concat([Buffer.from([0, 10]), Buffer.from([4]), Buffer.from('MaIl'), Buffer.from([0xc0, 12])])
    expect(await world.update(key, { updates: [add(zone.toUpperCase(), 'MX', data)] })).toBe('NOERROR')
    expect(await world.recordsOf(zone)).toEqual([`@ MX 10 mail.${zone}`])
  })

  test('passes the rules and limits of the API, or changes nothing at all', async () => {
    const { zone, key } = await newZone()
    const good = addText(`x.${zone}`, 'a')
    await world.call('POST', `/dns/${zone}/records`, { body: { type: 'ALIAS', name: 'al', value: 'a.example.net' } })
    const before = await world.recordsOf(zone)
    for (const bad of [
      add(zone, 'NS', nameData('ns.example.net')),
      add(zone, 'CNAME', nameData('www.example.net')),
      add(zone, 'SOA', Buffer.concat([nameData('a.example.net'), nameData('b.example.net'), Buffer.alloc(20)])),
      addAddress(`al.${zone}`, '192.0.2.1'),
      add(`x.${zone}`, 'A', Buffer.from([1, 2, 3])),
      add(`x.${zone}`, 'TXT', Buffer.from([5, 1])),
      // NULL, which no zone here has.
      add(`x.${zone}`, 10, Buffer.alloc(1)),
      addText(`a.*.${zone}`, 'b'),
    ]) {
      expect(await world.update(key, { updates: [good, bad] }), JSON.stringify(bad)).toBe('REFUSED')
    }
    expect(await world.recordsOf(zone)).toEqual(before)
  })

  test('adds nothing below a delegation that nobody would see, and deletes what is there', async () => {
    const { zone, key } = await newZone()
    const at = (name: string) => `${name}.${zone}`
    const cut = add(at('cut'), 'NS', nameData(at('ns1.cut')))
    const hidden = addText(at('deep.cut'), 'a')
    expect(await world.update(key, { updates: [hidden, cut] }), 'with the delegation').toBe('REFUSED')
    expect(await world.update(key, { updates: [hidden, addText(at('cut'), 'a')] })).toBe('NOERROR')
    expect(await world.update(key, { updates: [cut, addAddress(at('ns1.cut'), '192.0.2.1')] })).toBe('NOERROR')
    const before = await world.recordsOf(zone)
    for (const bad of [
      addText(at('cut'), 'b'),
      addText(at('x.cut'), 'b'),
      addAddress(at('x.y.cut'), '192.0.2.1'),
      addText(at('ns1.cut'), 'b'),
      add(at('inner.cut'), 'NS', nameData('ns.example.net')),
    ]) {
      const updates = [addText(at('good'), 'a'), bad]
      expect(await world.update(key, { updates }), JSON.stringify(bad)).toBe('REFUSED')
    }
    expect(await world.recordsOf(zone)).toEqual(before)
    const glue = add(at('ns1.cut'), 'AAAA', Buffer.alloc(16, 1))
    const ds = add(at('cut'), 'DS', Buffer.concat([Buffer.from([0, 1, 13, 2]), Buffer.alloc(32)]))
    expect(await world.update(key, { updates: [glue, ds, addText(at('besides'), 'a')] })).toBe('NOERROR')
    expect(await world.update(key, { updates: [remove(at('deep.cut')), remove(at('cut'), 'TXT')] })).toBe('NOERROR')
    expect(await world.update(key, { updates: [remove(at('cut')), hidden] }), 'without it').toBe('NOERROR')
  })

  test('adds nothing where another zone that is served here answers', async () => {
    const { zone, key } = await newZone()
    await world.newDomain(`dev.${zone}`)
    expect(await world.update(key, { updates: [addText(`_acme-challenge.dev.${zone}`, 'a')] })).toBe('REFUSED')
    expect(await world.update(key, { updates: [add(`dev.${zone}`, 'NS', nameData('ns.example.net'))] })).toBe('NOERROR')
  })

  test('within the quotas of the account, as a batch', async () => {
    const { zone, key } = await newZone()
    await world.db.account.update({
      where: { id: world.accountId },
      data: { limits: { recordsPerSet: 3, recordsPerZone: 5 } },
    })
    try {
      const many = (name: string, count: number) =>
        Array.from({ length: count }, (_, i) => addText(`${name}.${zone}`, `${i}`))
      expect(await world.update(key, { updates: many('x', 4) })).toBe('REFUSED')
      expect(await world.update(key, { updates: many('x', 3) })).toBe('NOERROR')
      expect(await world.update(key, { updates: many('y', 3) })).toBe('REFUSED')
      expect(await world.recordsOf(zone)).toHaveLength(3)
    } finally {
      await world.db.account.update({ where: { id: world.accountId }, data: { limits: {} } })
    }
  })
})

describe('prerequisites', () => {
  let zone: string
  let key: Key
  beforeAll(async () => {
    ;({ zone, key } = await newZone())
    await world.update(key, {
      updates: [addText(`t.${zone}`, 'a'), addText(`t.${zone}`, 'b'), addAddress(`w.${zone}`, '192.0.2.1')],
    })
  })
  const a = textData('a')
  const b = textData('b')
  const at = (name: string) => `${name}.${zone}`

  test.each([
    ['a name that is in use', () => [exists(at('t'))], 'NOERROR'],
    ['one that is not', () => [exists(at('n'))], 'NXDOMAIN'],
    ['a free name', () => [absent(at('n'))], 'NOERROR'],
    ['one that is taken', () => [absent(at('t'))], 'YXDOMAIN'],
    ['the apex, which is always in use', () => [exists(zone), exists(zone, 'SOA'), exists(zone, 'NS')], 'NOERROR'],
    ['a set', () => [exists(at('t'), 'TXT')], 'NOERROR'],
    ['a set that is not there', () => [exists(at('t'), 'A')], 'NXRRSET'],
    ['no set', () => [absent(at('t'), 'A')], 'NOERROR'],
    ['no set, where there is one', () => [absent(at('t'), 'TXT')], 'YXRRSET'],
    ['exactly these values', () => [exists(at('t'), 'TXT', b), exists(at('t'), 'TXT', a)], 'NOERROR'],
    ['fewer values', () => [exists(at('t'), 'TXT', a)], 'NXRRSET'],
    ['other values', () => [exists(at('t'), 'TXT', a), exists(at('t'), 'TXT', textData('c'))], 'NXRRSET'],
    ['values of a set that is not there', () => [exists(at('n'), 'TXT', a)], 'NXRRSET'],
    ['a value that no zone has', () => [exists(at('w'), 'A', Buffer.from([1]))], 'NXRRSET'],
    ['several, of which the last fails', () => [exists(at('t')), absent(at('n')), exists(at('n'))], 'NXDOMAIN'],
    ['a name outside the zone', () => [exists('t.example.net')], 'NOTZONE'],
    ['a TTL', () => [{ ...exists(at('t')), ttl: 1 }], 'FORMERR'],
    ['data where there is none', () => [{ ...exists(at('t'), 'TXT'), data: a }], 'FORMERR'],
    ['another class', () => [{ ...exists(at('t')), class: 3 }], 'FORMERR'],
    ['a type of questions', () => [exists(at('t'), 'AXFR')], 'FORMERR'],
  ])('%s', async (_what, prerequisites, rcode) => {
    const before = await world.recordsOf(zone)
    const updates = [addText(at('mark'), 'done')]
    expect(await world.update(key, { prerequisites: prerequisites(), updates })).toBe(rcode)
    if (rcode !== 'NOERROR') expect(await world.recordsOf(zone)).toEqual(before)
    else expect(await world.recordsOf(zone)).toContain('mark TXT "done"')
    await world.update(key, { updates: [remove(at('mark'))] })
  })

  test('of many that take the same free name at once, one gets it', async () => {
    const name = at('lock')
    const attempts = Array.from({ length: 8 }, (_, i) =>
      world.update(key, { prerequisites: [absent(name)], updates: [addText(name, `${i}`)] }),
    )
    const codes = (await Promise.all(attempts)).sort()
    expect(codes).toEqual(['NOERROR', ...Array(7).fill('YXDOMAIN')])
    expect((await world.recordsOf(zone)).filter((line) => line.startsWith('lock '))).toHaveLength(1)
  })
})

describe('the form', () => {
  test.each([
    ['a name outside the zone', (zone: string) => ({ updates: [addText(`x${zone}`, 'a')] }), 'NOTZONE'],
    ['a type of questions', (zone: string) => ({ updates: [add(zone, 'AXFR', Buffer.alloc(0))] }), 'FORMERR'],
    ['ANY as a record', (zone: string) => ({ updates: [add(zone, 'ANY', Buffer.alloc(0))] }), 'FORMERR'],
    [
      'ANY as one record to delete',
      (zone: string) => ({ updates: [remove(zone, 'ANY', Buffer.from([1]))] }),
      'FORMERR',
    ],
    ['a deletion with a TTL', (zone: string) => ({ updates: [{ ...remove(zone, 'TXT'), ttl: 5 }] }), 'FORMERR'],
    [
      'a deletion of a set with data',
      (zone: string) => ({ updates: [{ ...remove(zone, 'TXT'), data: textData('a') }] }),
      'FORMERR',
    ],
    ['another class', (zone: string) => ({ updates: [{ ...addText(zone, 'a'), class: 3 }] }), 'FORMERR'],
    [
      'rdata whose name points forwards',
      (zone: string) => ({ updates: [add(zone, 'NS', Buffer.from([0xc1, 0xff]))] }),
      'FORMERR',
    ],
    ['a zone section that is not SOA', () => ({ zoneType: 1 }), 'FORMERR'],
    ['another class of zone', () => ({ zoneClass: 3 }), 'NOTAUTH'],
    [
      'more records than are worked on at once',
      (zone: string) => ({ updates: Array.from({ length: 251 }, () => addText(zone, 'a')), tcp: true }),
      'REFUSED',
    ],
  ])('%s', async (_what, message, rcode) => {
    const { zone, key } = await newZone()
    expect(await world.update(key, message(zone))).toBe(rcode)
    expect(await world.recordsOf(zone)).toEqual([])
  })
})

describe('who may update', () => {
  const send = async (packet: Buffer) => (await sendUdp(world.ports[0]!, packet))!
  const errorOf = (answer: Buffer) => (readTsig(answer) as Tsig | null)?.error

  test('nobody without a key, with a wrong one, or at another time', async () => {
    const { zone, key } = await newZone()
    const message = updateMessage(zone, { updates: [addText(zone, 'x')] })
    expect(rcodeOf(await send(message))).toBe('REFUSED')
    const cases: [Buffer, number][] = [
      [sign({ ...key, name: 'nobody' }, message), tsigErrors.BADKEY],
      [sign({ ...key, secret: Buffer.alloc(32) }, message), tsigErrors.BADSIG],
      [sign(key, message, nowSeconds() - 301), tsigErrors.BADTIME],
      [sign(key, message, nowSeconds() + 302), tsigErrors.BADTIME],
    ]
    for (const [packet, error] of cases) {
      const answer = await send(packet)
      expect(rcodeOf(answer)).toBe('NOTAUTH')
      if (errorOf(answer) !== undefined) expect(errorOf(answer)).toBe(error)
      expect(answer.length).toBeLessThanOrEqual(Math.max(packet.length, 200))
    }
    const changed = sign(key, message)
    const place = 12 + nameOctets(zone).length + 4 + 1
    changed[place] = changed[place]! ^ 0x20
    expect(rcodeOf(await send(changed))).toBe('NOTAUTH')
    expect(await world.recordsOf(zone)).toEqual([])
  })

  test('a key of another zone is refused, and a zone that is not here is nobody’s', async () => {
    const [one, other] = [await newZone(), await newZone()]
    expect(await world.update(one.key, { zone: other.zone, updates: [addText(other.zone, 'x')] })).toBe('REFUSED')
    expect(await world.update(one.key, { zone: 'elsewhere.net', updates: [] })).toBe('NOTAUTH')
    expect(await world.update(one.key, { zone: `below.${one.zone}`, updates: [] })).toBe('NOTAUTH')
    expect(await world.recordsOf(other.zone)).toEqual([])
  })

  test('a key that is deleted, of transfers, or of a suspended account is of no use', async () => {
    const { zone, key } = await newZone()
    const transfer = await world.newKey(zone, { purpose: 'transfer' })
    const updates = [addText(zone, 'x')]
    expect(await world.update(transfer, { updates })).toBe('REFUSED')
    await world.db.account.update({ where: { id: world.accountId }, data: { suspendedAt: new Date() } })
    expect(await world.update(key, { updates })).toBe('REFUSED')
    await world.db.account.update({ where: { id: world.accountId }, data: { suspendedAt: null } })
    await world.call('DELETE', `/dns/${zone}/keys/${key.id}`)
    await until(async () => rcodeOf(await send(sign(key, updateMessage(zone, { updates })))) === 'NOTAUTH')
    expect(await world.recordsOf(zone)).toEqual([])
  })

  test('of two claims to a name, only the key of the one that is served', async () => {
    const { zone, key } = await newZone()
    const other = await world.newAccount()
    await world.newDomain(zone, other.token)
    await world.db.domain.updateMany({ where: { name: zone, accountId: other.accountId }, data: { verified: true } })
    const theirs = await world.newKey(zone, {}, other.token)
    expect(await world.update(key, { updates: [addText(zone, 'mine')] })).toBe('NOTAUTH')
    expect(await world.update(theirs, { updates: [addText(zone, 'theirs')] })).toBe('NOERROR')
    const rows = await world.db.dnsRecord.findMany({ where: { domain: { name: zone } }, include: { domain: true } })
    expect(rows.map(({ domain, value }) => [domain.accountId, value])).toEqual([[other.accountId, '"theirs"']])
  })

  test('a narrowed key writes its names and types, and nothing beyond them', async () => {
    const { zone, key: wide } = await newZone()
    const key = await world.newKey(zone, { names: ['_acme-challenge', '_acme-challenge.*'], types: ['TXT'] })
    const at = (name: string) => (name === '@' ? zone : `${name}.${zone}`)
    await world.update(wide, {
      updates: [addText(at('www'), 'old'), add(at('_acme-challenge'), 'CAA', Buffer.from('\0\x05issue;', 'latin1'))],
    })
    const before = await world.recordsOf(zone)
    const own = addText(at('_acme-challenge'), 'token')
    for (const beyond of [
      addText(at('www'), 'x'),
      addText(at('@'), 'x'),
      addText(at('x_acme-challenge'), 'x'),
      addText(at('www._acme-challenge'), 'x'),
      addText(at('*'), 'x'),
      addAddress(at('_acme-challenge'), '192.0.2.1'),
      add(at('_acme-challenge'), 'CNAME', nameData('x.example.net')),
      remove(at('www'), 'TXT'),
      remove(at('www')),
      remove(at('www'), 'TXT', textData('old')),
      remove(at('nothing')),
      remove(at('_acme-challenge'), 'CAA'),
      remove(at('_acme-challenge')),
    ]) {
      expect(await world.update(key, { updates: [own, beyond] }), JSON.stringify(beyond)).toBe('REFUSED')
      expect(await world.update(key, { updates: [beyond] }), JSON.stringify(beyond)).toBe('REFUSED')
    }
    expect(await world.recordsOf(zone)).toEqual(before)
    const updates = [own, addText(at('_acme-challenge.a.b'), 'token')]
    expect(await world.update(key, { updates })).toBe('NOERROR')
    // All of a name, where it has nothing but what the key may touch.
    expect(await world.update(key, { updates: [remove(at('_acme-challenge.a.b'))] })).toBe('NOERROR')
    expect(await world.recordsOf(zone)).toEqual([...before, '_acme-challenge TXT "token"'].sort())
  })
})

describe('a request that comes again', () => {
  test('is answered again and not done again, by whichever nameserver, whatever its id', async () => {
    const { zone, key } = await newZone()
    const first = sign(key, updateMessage(zone, { updates: [addText(`x.${zone}`, 'old')] }))
    expect(rcodeOf((await sendUdp(world.ports[0]!, first))!)).toBe('NOERROR')
    await world.update(key, { updates: [remove(`x.${zone}`)] })
    const serial = await serialOf(zone)
    const again = Buffer.from(first)
    again.writeUInt16BE(first.readUInt16BE(0) ^ 1, 0)
    for (const packet of [first, again]) {
      for (const port of world.ports) expect(rcodeOf((await sendUdp(port, packet))!)).toBe('NOERROR')
      const [answer] = await sendTcp(world.ports[0]!, framed(packet))
      expect(rcodeOf(answer!)).toBe('NOERROR')
    }
    expect(await world.recordsOf(zone)).toEqual([])
    expect(await serialOf(zone)).toBe(serial)
  })

  test('and failed stays failed, though it would do now', async () => {
    const { zone, key } = await newZone()
    const message = updateMessage(zone, { prerequisites: [exists(`x.${zone}`)], updates: [remove(`x.${zone}`)] })
    const refused = updateMessage(zone, { updates: [add(zone, 'NS', nameData('a.example.net')), addText(zone, 'b')] })
    const packets = [sign(key, message), sign(key, refused)]
    const ask = () => Promise.all(packets.map(async (packet) => rcodeOf((await sendUdp(world.ports[0]!, packet))!)))
    expect(await ask()).toEqual(['NXDOMAIN', 'REFUSED'])
    await world.update(key, { updates: [addText(`x.${zone}`, 'kept')] })
    expect(await ask()).toEqual(['NXDOMAIN', 'REFUSED'])
    expect(await world.recordsOf(zone)).toEqual(['x TXT "kept"'])
  })

  test('many times at once is done once', async () => {
    const { zone, key } = await newZone()
    const before = await serialOf(zone)
    const packet = sign(key, updateMessage(zone, { updates: [addText(`x.${zone}`, 'a')] }))
    const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => sendUdp(world.ports[i % 2]!, packet)))
    for (const answer of answers) expect(rcodeOf(answer!)).toBe('NOERROR')
    expect(await serialOf(zone)).toBe(before + 1)
  })
})
