// Archives of a batch, whose whole body is in memory: other requests get their turns while it is read.
import { afterEach, expect, it, vi } from 'vitest'
import { tarEnd } from '../../../src/platform/files/tar.ts'
import { readBatch } from '../../../src/services/uploads/batch.ts'
import { archive, file, sha256 } from '../../helpers/uploads.ts'
import { flagged, record } from '../../platform/tars.ts'

afterEach(() => void vi.restoreAllMocks())

const one = archive([file(sha256('one'), 'one')])

it.each(['x', 'g', 'L', 'K'])(
  'headers of the kind %s without a file between them are read in many turns',
  async (flag) => {
    // Each look at the time is as far from the last one as work may take.
    let nowMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 10))
    let turns = 0
    let done = false
    const count = () => {
      turns++
      if (!done) setImmediate(count)
    }
    setImmediate(count)
    const name = Buffer.from(flag === 'L' ? sha256('one') : '')
    const headers = Buffer.concat(Array(500).fill(flagged(flag, name)))
    expect(await readBatch(Buffer.concat([headers, one]))).toHaveLength(1)
    done = true
    expect(turns).toBeGreaterThan(400)
  },
)

it('refuses more attributes than a file may have, in one header or in many', async () => {
  const attributes = (count: number) => flagged('x', Buffer.alloc(5 * count, record('a', '')))
  const read = (...headers: Buffer[]) => readBatch(Buffer.concat([...headers, one]))
  expect(await read(attributes(1_000))).toHaveLength(1)
  const refusal = 'A file in the archive has more than 1000 attributes.'
  await expect(read(attributes(1_001))).rejects.toThrow(refusal)
  await expect(read(...Array(11).fill(attributes(100)))).rejects.toThrow(refusal)
  await expect(readBatch(Buffer.concat([attributes(1_001), tarEnd]))).rejects.toThrow(refusal)
})
