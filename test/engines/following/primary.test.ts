import { expect, test } from 'vitest'
import { linesOf } from '../../../src/engines/following/primary.ts'

test('the records of a large zone are written down while others get on', async () => {
  const record = {
    name: `${'\u00fe'.repeat(200)}.a.example`,
    type: 16,
    class: 1,
    ttl: 60,
    rdata: Buffer.from([1, 0x61]),
  }
  const records = Array.from({ length: 20_000 }, () => record)
  let turns = 0
  let isOver = false
  const turn = () => {
    turns++
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const text = await linesOf('a.example', records)
  isOver = true
  expect(turns).toBeGreaterThan(5)
  expect(text.slice(0, text.indexOf('\n'))).toBe(`${'\\254'.repeat(200)}.a.example. 60 IN TYPE16 \\# 2 0161`)
})
