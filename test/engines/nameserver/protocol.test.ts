import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addressesIn, askTcp, askUdp, nameOctets, question, readMessage, receiveFrom, sendUdp } from './packets.ts'
import { type Served, serveZones } from './zones.ts'

let served: Served
beforeAll(async () => {
  served = await serveZones()
  const big = Array.from({ length: 60 }, (_, index) => `big A 192.0.2.${index + 1}`).join('\n')
  const texts = Array.from(
    { length: 30 },
    (_, index) => `texts TXT "${String(index).padStart(3, '0')}${'x'.repeat(200)}"`,
  )
  const glue = Array.from({ length: 12 }, (_, index) => {
    const host = `nameserver-with-a-long-name-${index}-${'y'.repeat(30)}`
    return `cut NS ${host}.cut.example.com\n${host}.cut A 192.0.2.${index + 1}\n${host}.cut AAAA 2001:db8::${index + 1}`
  })
  served.put(
    'example.com',
    `www A 192.0.2.1\nchain CNAME big.example.com\n${big}\n${texts.join('\n')}\n${glue.join('\n')}`,
  )
})
afterAll(() => served.stop())

/** Null when the question that comes behind it is answered first: they are answered in turn. */
const raw = async (packet: Buffer) => {
  const { promise: first, resolve } = Promise.withResolvers<Buffer>()
  const socket = receiveFrom(served.port, resolve)
  // A packet too short to have a number has another one in any case.
  const id = packet.length < 2 ? 0 : packet.readUInt16BE(0) ^ 0xffff
  const behind = question('www.example.com', 'A', { id })
  socket.send(packet, served.port, '127.0.0.1')
  socket.send(behind, served.port, '127.0.0.1')
  const answer = await first
  socket.close()
  return answer.readUInt16BE(0) === id ? null : readMessage(answer)
}

describe('case', () => {
  test('of the question comes back octet for octet, and behind the owner’s pointer', async () => {
    for (const name of ['wWw.ExAmPlE.cOm', 'WWW.EXAMPLE.COM', 'www.example.com']) {
      const packet = question(name, 'A')
      const answer = (await sendUdp(served.port, packet))!
      expect(answer.subarray(12, packet.length)).toEqual(packet.subarray(12))
      const message = readMessage(answer)
      expect(message.answer.map((rr) => rr.name)).toEqual([name])
      expect(addressesIn(message.answer)).toEqual(['192.0.2.1'])
      expect(answer.readUInt16BE(packet.length)).toBe(0xc00c)
    }
  })

  test('is preserved by answers that say no, too', async () => {
    const message = await askUdp(served.port, 'nOpE.eXample.com', 'A')
    expect(message).toMatchObject({ rcode: 'NXDOMAIN', question: { name: 'nOpE.eXample.com' } })
    expect(message.authority[0]!.name).toBe('eXample.com')
  })
})

describe('flags', () => {
  test('RD is copied, RA is never set, AA is set for our own', async () => {
    for (const rd of [true, false]) {
      expect(await askUdp(served.port, 'www.example.com', 'A', { rd, id: 4711 })).toMatchObject({
        id: 4711,
        rd,
        ra: false,
        aa: true,
        opcode: 0,
      })
    }
  })
})

describe('EDNS', () => {
  test('is answered with EDNS, and only where it was asked with', async () => {
    expect((await askUdp(served.port, 'www.example.com', 'A')).opt).toBeNull()
    const { opt } = await askUdp(served.port, 'www.example.com', 'A', { edns: 4096, dnssecOk: true })
    expect(opt).toMatchObject({ size: 1232, version: 0, dnssecOk: true })
    expect(opt!.options.size).toBe(0)
  })

  test('of another version is BADVERS', async () => {
    const message = await askUdp(served.port, 'www.example.com', 'A', { edns: 1232, version: 1 })
    expect(message).toMatchObject({ rcode: 'BADVERS', answer: [], opt: { version: 0 } })
  })

  test('with NSID gets the name of the nameserver', async () => {
    const { opt } = await askUdp(served.port, 'www.example.com', 'A', { edns: 1232, options: [[3, Buffer.alloc(0)]] })
    expect(opt!.options.get(3)!.toString()).toBe('ns1.berth.example')
  })

  test('with options that nobody knows gets none of them', async () => {
    const options: [number, Buffer][] = [
      [65001, Buffer.from('x')],
      [8, Buffer.from([0, 1, 24, 0, 192, 0, 2])],
    ]
    const { opt, rcode } = await askUdp(served.port, 'www.example.com', 'A', { edns: 1232, options })
    expect([rcode, opt!.options.size]).toEqual(['NOERROR', 0])
  })
})

describe('truncation', () => {
  test.each([
    ['without EDNS at 512', undefined, 512],
    ['at what the client takes', 800, 800],
    ['at 512 where a client claims less', 100, 512],
    ['at 1232 where a client claims more', 65_535, 1232],
  ])('%s', async (_rule, edns, limit) => {
    const message = await askUdp(served.port, 'texts.example.com', 'TXT', edns === undefined ? {} : { edns })
    expect(message).toMatchObject({ tc: true, rcode: 'NOERROR', aa: true })
    expect(message.size).toBeLessThanOrEqual(limit)
  })

  test('takes whole RRsets away: the CNAME before one stays', async () => {
    const message = await askUdp(served.port, 'chain.example.com', 'A')
    expect(message.tc).toBe(true)
    expect(message.answer.map((rr) => rr.type)).toEqual([5])
  })

  test('does not happen where there is room', async () => {
    const message = await askUdp(served.port, 'big.example.com', 'A', { edns: 1232 })
    expect(message).toMatchObject({ tc: false })
    expect(message.answer).toHaveLength(60)
  })

  test('does not happen over TCP', async () => {
    const message = await askTcp(served.port, 'texts.example.com', 'TXT')
    expect(message).toMatchObject({ tc: false })
    expect(message.answer).toHaveLength(30)
  })

  test('of glue is told as well', async () => {
    const message = await askUdp(served.port, 'x.cut.example.com', 'A', { edns: 1232 })
    expect(message).toMatchObject({ tc: true, aa: false })
    expect(message.authority).toHaveLength(12)
    expect((await askTcp(served.port, 'x.cut.example.com', 'A')).additional).toHaveLength(24)
  })
})

describe('what cannot be answered', () => {
  test.each([
    ['a zone that is not ours', question('example.net', 'A'), 'REFUSED'],
    ['the root', question('.', 'NS'), 'REFUSED'],
    ['a class other than IN', question('version.bind', 'TXT', { class: 3 }), 'REFUSED'],
    ['a transfer over UDP', question('example.com', 'AXFR'), 'REFUSED'],
    ['another opcode', question('example.com', 'SOA', { opcode: 5 }), 'NOTIMP'],
    ['a notice', question('example.com', 'SOA', { opcode: 4 }), 'NOTIMP'],
    ['no question', question('example.com', 'A', { counts: [0, 0, 0, 0] }), 'FORMERR'],
    ['two questions', question('example.com', 'A', { counts: [2, 0, 0, 0] }), 'FORMERR'],
    ['an answer section', question('example.com', 'A', { counts: [1, 1, 0, 0] }), 'FORMERR'],
    ['records that are not there', question('example.com', 'A', { counts: [1, 0, 0, 9] }), 'FORMERR'],
    ['octets after the end', question('example.com', 'A', { trailing: Buffer.from('more') }), 'FORMERR'],
    ['a name that is cut off', question('example.com', 'A').subarray(0, 20), 'FORMERR'],
    [
      'an option that is cut off',
      question('example.com', 'A', { edns: 1232, options: [[10, Buffer.alloc(9)]] }),
      'FORMERR',
    ],
  ])('%s: %s', async (_what, packet, rcode) => {
    const message = await raw(packet)
    expect(message).toMatchObject({ rcode, aa: false, ra: false, answer: [], authority: [] })
    expect(message!.size).toBeLessThanOrEqual(packet.length)
  })

  test('a name of pointers, and of more than 255 octets', async () => {
    const header = question('.', 'A').subarray(0, 12)
    const tail = Buffer.from([0, 1, 0, 1])
    for (const pointer of [0xc00c, 0xc000, 0xc0ff, 0x4001]) {
      const name = Buffer.from([pointer >> 8, pointer & 0xff])
      expect(await raw(Buffer.concat([header, name, tail]))).toMatchObject({ rcode: 'FORMERR', question: null })
    }
    const long = nameOctets(Array.from({ length: 5 }, () => 'x'.repeat(62)).join('.'))
    expect(await raw(Buffer.concat([header, long, tail]))).toMatchObject({ rcode: 'FORMERR', question: null })
  })

  test('an answer, and less than a header, cost a drop and nothing else', async () => {
    const before = await served.metric('berth_nameserver_dropped_total', { reason: 'unreadable' })
    const answer = question('www.example.com', 'A')
    answer[2]! |= 0x80
    expect(await raw(answer)).toBeNull()
    expect(await raw(Buffer.from('short'))).toBeNull()
    expect(await raw(Buffer.alloc(0))).toBeNull()
    expect(await served.metric('berth_nameserver_dropped_total', { reason: 'unreadable' })).toBe(before + 3)
  })

  test('a label with a dot in it is not two labels', async () => {
    const packet = question('wwwXexample.com', 'A')
    packet[16] = 0x2e
    expect(await raw(packet)).toMatchObject({ rcode: 'REFUSED' })
  })
})

test('answers are counted by type and code', async () => {
  const count = (rcode: string) => served.metric('berth_nameserver_queries_total', { type: 'MX', rcode })
  const before = [await count('NOERROR'), await count('NXDOMAIN')]
  await askUdp(served.port, 'www.example.com', 'MX')
  await askUdp(served.port, 'www.example.com', 'MX')
  await askTcp(served.port, 'nope.example.com', 'MX')
  expect([await count('NOERROR'), await count('NXDOMAIN')]).toEqual([before[0]! + 2, before[1]! + 1])
  expect(await served.metric('berth_nameserver_zones')).toBe(1)
})

describe('an answer from the cache', () => {
  test('is the one that was encoded, for every way of asking', async () => {
    const ways = [
      {},
      { rd: true },
      { edns: 1232 },
      { edns: 512, options: [[3, Buffer.alloc(0)]] as [number, Buffer][] },
    ]
    for (const [name, type] of [
      ['big', 'A'],
      ['www', 'A'],
      ['nope', 'A'],
      ['x.cut', 'A'],
      ['chain', 'A'],
    ] as const) {
      for (const way of ways) {
        served.cache.clear()
        const first = await sendUdp(served.port, question(`${name}.example.com`, type, { ...way, id: 1 }))
        const second = await sendUdp(served.port, question(`${name}.example.com`, type, { ...way, id: 1 }))
        expect(second).toEqual(first)
      }
    }
  })

  test('ends with the zone it came from', async () => {
    served.put('changing.com', 'www A 192.0.2.1')
    const ask = async (name = 'www.changing.com') => addressesIn((await askUdp(served.port, name, 'A')).answer)
    expect(await ask()).toEqual(['192.0.2.1'])
    served.put('changing.com', 'www A 192.0.2.2')
    expect(await ask()).toEqual(['192.0.2.2'])
    expect(await ask('a.b.changing.com')).toEqual([])
    served.put('b.changing.com', 'a A 192.0.2.3')
    expect(await ask('a.b.changing.com')).toEqual(['192.0.2.3'])
    served.remove('b.changing.com')
    expect(await ask('a.b.changing.com')).toEqual([])
    served.remove('changing.com')
    expect((await askUdp(served.port, 'www.changing.com', 'A')).rcode).toBe('REFUSED')
  })
})
