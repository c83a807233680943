import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { encodeQuery, isAnswerTo, rcodeOf } from '../../src/dns/packet/message.ts'
import { rcodes } from '../../src/dns/packet/numbers.ts'
import { readBoundary } from '../../src/sandbox/network/addresses.ts'
import {
  addressesIn,
  addressQuestion,
  type Question,
  readQuestion,
  reply,
  screen,
} from '../../src/sandbox/network/packets.ts'
import { readServers } from '../../src/sandbox/network/upstream.ts'
import { seededRandom } from '../helpers/seed.ts'
import { answerPacket, type Entry, questionPacket } from './dns.ts'

const { randomBytes, randomInt } = seededRandom()

const { crosses } = readBoundary(['198.51.100.77'])
const question = addressQuestion('www.example.com')!
/** The question as it is passed on. */
const ask = ({ bytes }: Question, id: number) => encodeQuery(bytes, id, true)
const counts = (packet: Buffer) => [4, 6, 8, 10].map((offset) => packet.readUInt16BE(offset))
const answer = (...entries: Entry[]) => answerPacket(ask(question, 7), entries)
const a = (address: string, section: Entry['section'] = 'answer'): Entry => ({
  section,
  type: 1,
  data: Buffer.from(address.split('.').map(Number)),
})

/** A packet of ours that came back: an answer with the client's id, and nothing in it. */
function expectEmpty(packet: Buffer, rcode: number): void {
  expect(counts(packet).slice(1)).toEqual([0, 0, 0])
  expect(packet.readUInt16BE(2) & 0x8000).toBe(0x8000)
  expect(rcodeOf(packet)).toBe(rcode)
}

describe('a question', () => {
  const read = (packet: Buffer) => readQuestion(packet) as Question & { answer: Buffer }

  test('for addresses, mail or text is passed on with nothing else of the packet', () => {
    for (const type of [1, 2, 5, 6, 12, 15, 16, 33, 257]) {
      const found = read(questionPacket('www.example.com', type, { id: 99 }))
      expect(found).toMatchObject({ id: 99, type })
      const passed = ask(found, 5)
      expect(counts(passed)).toEqual([1, 0, 0, 0])
      expect(passed.length).toBe(12 + 17 + 4)
    }
  })

  test('whose answers name other addresses is answered empty, ANY and transfers are refused', () => {
    for (const type of [28, 38, 64, 65]) expectEmpty(read(questionPacket('a.example', type)).answer, rcodes.NOERROR)
    for (const type of [0, 41, 249, 250, 251, 252, 253, 254, 255])
      expectEmpty(read(questionPacket('a.example', type)).answer, rcodes.REFUSED)
    const chaos = questionPacket('version.bind', 16)
    chaos.writeUInt16BE(3, chaos.length - 2)
    expectEmpty(read(chaos).answer, rcodes.REFUSED)
  })

  test('that is none gets a format error or nothing', () => {
    const good = questionPacket('www.example.com', 1)
    const two = Buffer.from(good)
    two.writeUInt16BE(2, 4)
    const none = Buffer.from(good)
    none.writeUInt16BE(0, 4)
    const pointer = Buffer.concat([good.subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])])
    const long = questionPacket(Array(8).fill('x'.repeat(40)).join('.'), 1)
    for (const packet of [two, none, pointer, long, good.subarray(0, 20), good.subarray(0, -1)])
      expectEmpty(read(packet).answer, rcodes.FORMERR)
    const update = Buffer.from(good)
    update[2] = 5 << 3
    expectEmpty(read(update).answer, rcodes.NOTIMP)
    expect(read(reply(question, 0))).toBeUndefined()
    for (let length = 0; length < 12; length++) expect(read(good.subarray(0, length))).toBeUndefined()
  })
})

describe('an answer', () => {
  test('is told from others by id, question and kind', () => {
    const good = answer(a('203.0.113.1'))
    expect(isAnswerTo(good, ask(question, 7))).toBe(true)
    expect(isAnswerTo(good, ask(question, 8))).toBe(false)
    expect(isAnswerTo(good, ask(addressQuestion('www.example.org')!, 7))).toBe(false)
    expect(isAnswerTo(good, ask(addressQuestion('WWW.example.com')!, 7))).toBe(true)
    expect(isAnswerTo(ask(question, 7), ask(question, 7))).toBe(false)
    for (let length = 0; length < 33; length++)
      expect(isAnswerTo(good.subarray(0, length), ask(question, 7))).toBe(false)
  })

  test('with public addresses keeps its records, and loses what is additional', () => {
    const client = { ...question, id: 4711, recursionDesired: true }
    const cname: Entry = { section: 'answer', type: 5, data: Buffer.from([3, 0x63, 0x64, 0x6e, 0xc0, 0x10]) }
    const screened = screen(
      answer(cname, a('203.0.113.1'), a('1.1.1.1'), a('192.0.2.9', 'authority'), a('10.0.0.1', 'additional')),
      client,
      crosses,
    )
    expect(screened.readUInt16BE(0)).toBe(4711)
    expect(counts(screened)).toEqual([1, 3, 1, 0])
    expect(addressesIn(screened, question)).toEqual(['203.0.113.1', '1.1.1.1'])
    expect(screened.includes(Buffer.from([10, 0, 0, 1]))).toBe(false)
  })

  test('with one private address, or one of the platform, is empty', () => {
    for (const address of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '100.64.0.1', '224.0.0.1', '198.51.100.77']) {
      expectEmpty(screen(answer(a('203.0.113.1'), a(address)), question, crosses), rcodes.NOERROR)
      expectEmpty(screen(answer(a('203.0.113.1'), a(address, 'authority')), question, crosses), rcodes.NOERROR)
    }
    const ipv6: Entry = { section: 'answer', type: 28, data: randomBytes(16) }
    expectEmpty(screen(answer(a('203.0.113.1'), ipv6), question, crosses), rcodes.NOERROR)
  })

  test('that is malformed is a failure of the server', () => {
    const loop: Entry = { section: 'answer', type: 1, data: Buffer.from([1, 1, 1, 1]), name: Buffer.from([0xc0, 33]) }
    const forward: Entry = { ...loop, name: Buffer.from([0xff, 0xff]) }
    const short: Entry = { section: 'answer', type: 1, data: Buffer.from([1, 1, 1]) }
    const reserved: Entry = { ...loop, name: Buffer.from([0x80, 0]) }
    for (const entry of [loop, forward, short, reserved, { ...short, type: 41 }])
      expectEmpty(screen(answer(entry), question, crosses), rcodes.SERVFAIL)
    const good = answer(a('203.0.113.1'), a('203.0.113.2'))
    for (let length = 33; length < good.length; length++)
      expectEmpty(screen(good.subarray(0, length), question, crosses), rcodes.SERVFAIL)
    const many = answer(a('203.0.113.1'))
    many.writeUInt16BE(65_535, 6)
    expectEmpty(screen(many, question, crosses), rcodes.SERVFAIL)
  })

  test('of random octets never throws and never names a private address', () => {
    const head = answer(a('203.0.113.1'), a('203.0.113.2')).subarray(0, 33)
    for (let round = 0; round < 5000; round++) {
      const noise = randomBytes(randomInt(120))
      readQuestion(noise)
      isAnswerTo(noise, ask(question, 7))
      const packet = Buffer.concat([head, noise])
      packet.writeUInt16BE(randomInt(4), 6)
      packet.writeUInt16BE(randomInt(3), 8)
      const screened = screen(packet, question, crosses)
      expect(addressesIn(screened, question).filter(crosses)).toEqual([])
      const flipped = Buffer.from(answer(a('203.0.113.1'), a('10.0.0.1')))
      flipped[randomInt(flipped.length - 12) + 12] = randomInt(256)
      expect(addressesIn(screen(flipped, question, crosses), question).filter(crosses)).toEqual([])
    }
  })
})

test('a name is a question only if it is one', () => {
  for (const name of ['', '.', 'a..b', 'x'.repeat(64), Array(130).fill('a').join('.')])
    expect(addressQuestion(name)).toBeUndefined()
})

test('upstream servers are read with and without a port', () => {
  expect(readServers(['192.0.2.1', '192.0.2.1:5353', '[2001:db8::1]:53', '2001:db8::1', 'name', 'name:53'])).toEqual([
    { address: '192.0.2.1', port: 53 },
    { address: '192.0.2.1', port: 5353 },
    { address: '2001:db8::1', port: 53 },
    { address: '2001:db8::1', port: 53 },
  ])
})
