import { expect, test } from 'vitest'
import type { Db } from '../../../src/platform/database/database.ts'
import type { RecordRow, Zone } from '../../../src/services/dns/records/dns-records.ts'
import { counted, takesLinearSteps } from '../../helpers/steps/steps.ts'

type Placements = typeof import('../../../src/services/dns/records/placement.ts')
const { placementOf } = await counted<Placements>('src/services/dns/records/placement.ts')

const zone = { id: 'dom_a', name: 'example.com' } as Zone
const emptyZone = { $queryRawUnsafe: async () => [] } as unknown as Db

const rowsOf = (count: number, type: RecordRow['type'], write: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => {
    return { id: `rec_${index}`, type, name: 'a', value: write(index) } as RecordRow
  })

test('many records at one name are put there in linear steps', async () => {
  for (const [type, write] of [
    ['TXT', (index) => `"${index}"`],
    ['MX', (index) => `${index} a.example.com`],
  ] as [RecordRow['type'], (index: number) => string][]) {
    const place = async (size: number) => {
      const placed = rowsOf(size, type, write)
      const placement = await placementOf(emptyZone, zone, { placed, leaving: [] })
      const refused = placed.filter((row) => placement.put(row))
      return { refused, there: placement.recordsAt('a'), wrong: placement.settle() }
    }
    const { refused, there, wrong } = await place(1_000)
    expect(there).toHaveLength(1_000)
    expect([...refused, ...wrong]).toEqual([])
    await takesLinearSteps(1_000, place)
  }
})
