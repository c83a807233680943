import { expect, test } from 'vitest'
import { followFrames } from '../../../src/engines/servers/proxy/frames.ts'
import { counted, stepsOf } from '../../helpers/steps/steps.ts'

const counting = await counted<typeof import('../../../src/engines/servers/proxy/frames.ts')>(
  'src/engines/servers/proxy/frames.ts',
)

/** A frame of a server, or of one that masks its frames although it shouldn't. */
function frame(opcode: number, payload: number, masked = false): Buffer {
  const header = Buffer.alloc(payload < 126 ? 2 : payload < 65_536 ? 4 : 10)
  header[0] = 0x80 | opcode
  header[1] = (masked ? 0x80 : 0) | (payload < 126 ? payload : payload < 65_536 ? 126 : 127)
  if (header.length === 4) header.writeUInt16BE(payload, 2)
  if (header.length === 10) header.writeBigUInt64BE(BigInt(payload), 2)
  return Buffer.concat([header, Buffer.alloc(payload + (masked ? 4 : 0), 0x88)])
}

const all = [0, 1, 125, 126, 65_535, 65_536].flatMap((payload) => [frame(1, payload), frame(2, payload, true)])

test('a frame can be inserted between two frames and nowhere else, however their octets come', () => {
  for (const size of [1, 2, 3, 7, 1_000, 70_000]) {
    const frames = followFrames()
    expect(frames.isBetween).toBe(true)
    const ends = new Set<number>([0])
    for (const one of all) ends.add(Math.max(...ends) + one.length)
    const octets = Buffer.concat(all)
    const wrong: number[] = []
    for (let at = 0; at < octets.length; at += size) {
      const part = octets.subarray(at, at + size)
      frames.pass(part)
      if (frames.isBetween !== ends.has(at + part.length)) wrong.push(at + part.length)
    }
    expect(wrong).toEqual([])
  }
})

test('nothing is inserted after the close frame of a server', () => {
  const frames = followFrames()
  frames.pass(Buffer.concat([frame(1, 5), frame(8, 2)]))
  expect(frames.isBetween).toBe(false)
})

test.each([
  ['empty', [0x82, 0]],
  ['empty, with a length of two octets', [0x82, 126, 0, 0]],
  ['empty, with a length of eight octets', [0x82, 127, 0, 0, 0, 0, 0, 0, 0, 0]],
  ['empty and masked', [0x82, 0x80, 1, 2, 3, 4]],
  ['of one octet', [0x82, 1, 0]],
])('frames that are %s take at most one step for each octet', async (_what, octets) => {
  const sent = Buffer.concat(Array.from({ length: 10_000 }, () => Buffer.from(octets)))
  const frames = counting.followFrames()
  expect(await stepsOf(() => frames.pass(sent))).toBeLessThanOrEqual(sent.length + 1)
  expect(frames.isBetween).toBe(true)
})
