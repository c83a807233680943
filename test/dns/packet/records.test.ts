// Records of messages from elsewhere: their names are read whole, and in a time that a hostile sender cannot lengthen.
import { expect, test } from 'vitest'
import { readRecords } from '../../../src/dns/packet/records.ts'
import { readName } from '../../../src/dns/packet/wire-names.ts'
import { counted, stepsOf } from '../../helpers/steps/steps.ts'

type Records = typeof import('../../../src/dns/packet/records.ts')
const counting = await counted<Records>('src/dns/packet/records.ts')

const headOctets = 12
const nsFixed = Buffer.from([0, 2, 0, 1, 0, 0, 0, 60])

/** A full message of NS records whose names all lead back to the first one, of as many labels. */
function messageOf(labels: number): { message: Buffer; count: number } {
  const name = Buffer.from(`${'\x01A'.repeat(labels)}\0`, 'latin1')
  const pointing = Buffer.from([0xc0, headOctets, ...nsFixed, 0, 2, 0xc0, headOctets])
  const first = Buffer.concat([Buffer.alloc(headOctets), name, nsFixed, Buffer.from([0, 2, 0xc0, headOctets])])
  const others = Math.floor((0xffff - first.length) / pointing.length)
  return { message: Buffer.concat([first, ...Array(others).fill(pointing)]), count: 1 + others }
}

test('names that lead to ends of others are read whole, in lower case, with what does not print escaped', () => {
  const octets = '\x03a.B\x02\xc0 \x07Example\0\x01x\xc0\x04'
  const message = Buffer.from(octets, 'latin1')
  const known = new Map()
  expect(readName(message, 0, known)).toEqual({
    name: 'a\\046b.\\192\\032.example',
    wire: '\x03a.b\x02\xc0 \x07example\0',
    end: 16,
  })
  const second = { name: 'x.\\192\\032.example', wire: '\x01x\x02\xc0 \x07example\0', end: 20 }
  expect(readName(message, 16, known)).toEqual(second)
  expect(readName(message, 16)).toEqual(second)
})

test('a name that is too long together with the end that it leads to is refused', () => {
  const { message } = messageOf(127)
  const longer = Buffer.concat([message.subarray(0, 300), Buffer.from([1, 0x61, 0xc0, headOctets])])
  const known = new Map()
  expect(readName(longer, headOctets, known).wire).toHaveLength(255)
  expect(() => readName(longer, 300, known)).toThrow(RangeError)
  expect(() => readName(longer, 300)).toThrow(RangeError)
})

test('a message full of long names takes a few steps per octet that is read or returned', async () => {
  const { message, count } = messageOf(127)
  const { records } = readRecords(message, headOctets, count)
  expect(records).toHaveLength(count)
  const octets = message.length + records.reduce((sum, { rdata }) => sum + rdata.length, 0)
  expect(await stepsOf(() => counting.readRecords(message, headOctets, count))).toBeLessThan(4 * octets)
})
