import { expect, test } from 'vitest'
import type { Db } from '../../../src/platform/database.ts'
import type { RecordRow, Zone } from '../../../src/services/dns/dns-records.ts'
import { placementOf } from '../../../src/services/dns/placement.ts'
import { takesLinearTime } from '../../helpers/linear-time.ts'

const zone = { id: 'dom_a', name: 'example.com' } as Zone
const emptyZone = { $queryRawUnsafe: async () => [] } as unknown as Db

const rowsOf = (count: number, type: RecordRow['type'], write: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => {
    return { id: `rec_${index}`, type, name: 'a', value: write(index) } as RecordRow
  })

test('many records at one name are put there in linear time', async () => {
  const sizes = { small: 1_000, large: 8_000 }
  for (const [type, write] of [
    ['TXT', (index) => `"${index}"`],
    ['MX', (index) => `${index} a.example.com`],
  ] as [RecordRow['type'], (index: number) => string][]) {
    const made = new Map<number, Awaited<ReturnType<typeof placementOf>>[]>()
    for (const size of Object.values(sizes)) {
      const placed = rowsOf(size, type, write)
      const several = [1, 2, 3].map(() => placementOf(emptyZone, zone, { placed, leaving: [] }))
      made.set(size, await Promise.all(several))
    }
    takesLinearTime(sizes, (size) => {
      const placement = made.get(size)!.pop()!
      expect(rowsOf(size, type, write).filter((row) => placement.put(row))).toEqual([])
      expect(placement.recordsAt('a')).toHaveLength(size)
      expect(placement.settle()).toEqual([])
    })
  }
})
