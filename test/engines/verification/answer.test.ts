import { expect, test } from 'vitest'
import { decodeAnswer, encodeQuery } from '../../../src/engines/verification/answer.ts'
import { seededRandom } from '../../helpers/seed.ts'

const { randomBytes, randomInt } = seededRandom()

const query = encodeQuery(0x1234, 'example.com', 'NS', false)!

/** An answer to the query, with these octets behind the question. */
function answered(answers: number, ...octets: (number[] | Buffer | string)[]): Buffer {
  const head = Buffer.from(query)
  head[2] = 0x84
  head.writeUInt16BE(answers, 6)
  return Buffer.concat([head, ...octets.map((part) => Buffer.from(part as string, 'latin1'))])
}

/** A record of a type that is passed over. */
const opaqueHead = (length: number) => [0xc0, 12, 0xff, 0, 0, 1, 0, 0, 0, 60, length >> 8, length & 0xff]
const pointerTo = (at: number) => [0xc0 | (at >> 8), at & 0xff]
/** Pointers that each lead to the one before, and the first to the name of the question. */
const pointersFrom = (start: number, count: number) =>
  Array.from({ length: count }, (_, index) => pointerTo(index === 0 ? 12 : start + 2 * (index - 1))).flat()
const nsHead = (length: number) => [0xc0, 12, 0, 2, 0, 1, 0, 0, 0, 60, 0, length]

test('an answer is read with its names in lower case, and what does not print in them is escaped', () => {
  const message = answered(1, nsHead(11), [3], 'NS.', [4], '\0\x1bA ', [0xc0, 12 + 8])
  expect(decodeAnswer(message, query)).toEqual({
    code: 0,
    authoritative: true,
    truncated: false,
    answer: [{ name: 'example.com', type: 'NS', data: 'ns\\046.\\000\\027a\\032.com' }],
    authority: [],
  })
})

test('an answer to another question, with another id, or that is a question itself, is nobody’s', () => {
  const message = answered(0)
  expect(decodeAnswer(message, query)).not.toBeNull()
  expect(decodeAnswer(message, encodeQuery(0x1235, 'example.com', 'NS', false)!)).toBeNull()
  expect(decodeAnswer(message, encodeQuery(0x1234, 'example.net', 'NS', false)!)).toBeNull()
  expect(decodeAnswer(message, encodeQuery(0x1234, 'example.com', 'TXT', false)!)).toBeNull()
  expect(decodeAnswer(query, query)).toBeNull()
  expect(decodeAnswer(Buffer.alloc(5), query)).toBeNull()
})

test.each<[string, Buffer]>([
  ['a pointer to itself', answered(1, [0xc0, query.length])],
  ['two pointers in a circle', answered(1, [0xc0, query.length + 2, 0xc0, query.length])],
  ['a name without an end', answered(1, [63], 'x'.repeat(63), [63], 'x'.repeat(63), [63], 'x'.repeat(63), [63], 'x')],
  ['a record that is cut off', answered(1, nsHead(200), [0])],
  ['more records than there are', answered(0xffff, nsHead(1), [0])],
  ['a text longer than its record', answered(1, [0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, 2, 9, 65])],
  [
    'a chain of more pointers than a name has labels',
    answered(
      2,
      opaqueHead(256),
      pointersFrom(query.length + 12, 128),
      pointerTo(query.length + 12 + 2 * 127),
      nsHead(1).slice(2),
      [0],
    ),
  ],
  ['an address of three octets', answered(1, [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 3, 1, 2, 3])],
])('%s is refused', (_title, message) => {
  expect(() => decodeAnswer(message, query)).toThrow(RangeError)
})

test('whatever a server sends is read or refused, and quickly', () => {
  const whole = answered(3, nsHead(5), [2], 'ns', [0xc0, 12], nsHead(2), [0xc0, 12], [0, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0])
  for (let round = 0; round < 5_000; round++) {
    const message = Buffer.concat([whole, randomBytes(randomInt(60))])
    // The id and the question stay, so that every message gets as far as the records.
    for (let hits = randomInt(6); hits > 0; hits--)
      message[query.length + randomInt(message.length - query.length)] = randomInt(256)
    message.writeUInt16BE(randomInt(5), 6)
    message.writeUInt16BE(randomInt(5), 8)
    try {
      decodeAnswer(message, query)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
    }
  }
})
