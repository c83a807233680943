// Which records may stand together, and which a delegation hides.
import { describe, expect, it } from 'vitest'
import { conflict, conflictsWithin, hiddenBelow, type PlacedRecord, pointsAtItself } from '../../src/dns/conflicts.ts'
import type { RecordType } from '../../src/dns/record-types.ts'
import { counted, takesLinearSteps } from '../helpers/steps/steps.ts'

type Conflicts = typeof import('../../src/dns/conflicts.ts')
const counting = await counted<Conflicts>('src/dns/conflicts.ts')

let count = 0
function record(name: string, type: RecordType, value = 'x.example.net'): PlacedRecord & { id: string } {
  count++
  return { id: `rec_${count}`, name, type, value }
}
function candidate(name: string, type: RecordType, value = 'y.example.net'): PlacedRecord {
  return { name, type, value }
}

describe('a record', () => {
  it('is refused as an exact duplicate, naming the record in the way', () => {
    const existing = record('www', 'A', '192.0.2.1')
    const found = conflict(candidate('www', 'A', '192.0.2.1'), [record('www', 'A', '192.0.2.2'), existing])
    expect(found).toMatchObject({ kind: 'existing', code: 'duplicate', record: existing })
  })

  it('is told it is a duplicate even where a CNAME rule would apply too', () => {
    const existing = [record('www', 'A', '192.0.2.1'), record('www', 'CNAME', 'y.example.net')]
    expect(conflict(candidate('www', 'CNAME'), existing)).toMatchObject({ code: 'duplicate' })
  })

  it('may be changed without meeting itself', () => {
    const existing = record('www', 'CNAME')
    expect(conflict({ ...existing, value: 'z.example.net' }, [existing])).toBeNull()
    expect(conflict(existing, [existing])).toBeNull()
  })

  it('may share its name with others of its type and of other types', () => {
    const existing = [record('www', 'A', '192.0.2.1'), record('www', 'TXT', '"x"'), record('@', 'ALIAS')]
    expect(conflict(candidate('www', 'A', '192.0.2.2'), existing)).toBeNull()
    expect(conflict(candidate('www', 'MX', '0 .'), existing)).toBeNull()
  })

  it('is refused beside a CNAME, and a CNAME beside it', () => {
    for (const type of ['A', 'ALIAS', 'TXT', 'NS', 'DS', 'HTTPS'] as const) {
      expect(conflict(candidate('www', type), [record('www', 'CNAME')])).toMatchObject({ code: 'beside_cname' })
      expect(conflict(candidate('www', 'CNAME'), [record('www', type)])).toMatchObject({ code: 'beside_cname' })
      expect(conflict(candidate('www', 'CNAME'), [record('a.www', type)])).toBeNull()
    }
  })

  it('of type CNAME or ALIAS is the only one of its type at a name', () => {
    expect(conflict(candidate('www', 'CNAME'), [record('www', 'CNAME')])).toMatchObject({ code: 'only_one' })
    expect(conflict(candidate('@', 'ALIAS'), [record('@', 'ALIAS')])).toMatchObject({ code: 'only_one' })
  })

  it('of type ALIAS does not stand beside addresses, either way around', () => {
    for (const type of ['A', 'AAAA'] as const) {
      expect(conflict(candidate('@', type), [record('@', 'ALIAS')])).toMatchObject({ code: 'beside_alias' })
      expect(conflict(candidate('@', 'ALIAS'), [record('@', type)])).toMatchObject({ code: 'beside_alias' })
    }
    expect(conflict(candidate('@', 'ALIAS'), [record('@', 'MX')])).toBeNull()
  })

  it('of type CNAME is refused at the apex by policy, with ALIAS offered', () => {
    const found = conflict(candidate('@', 'CNAME'), [])
    expect(found).toMatchObject({ kind: 'policy', code: 'cname_at_apex' })
    expect(found?.detail ?? '').toContain('ALIAS')
  })

  it('of type NS or DS is refused at the apex by policy, and NS at a wildcard', () => {
    expect(conflict(candidate('@', 'NS'), [])).toMatchObject({ kind: 'policy', code: 'ns_at_apex' })
    expect(conflict(candidate('@', 'DS'), [])).toMatchObject({ kind: 'policy', code: 'ds_at_apex' })
    expect(conflict(candidate('*', 'NS'), [])).toMatchObject({ kind: 'policy', code: 'ns_at_wildcard' })
    expect(conflict(candidate('*.a', 'NS'), [])).toMatchObject({ kind: 'policy', code: 'ns_at_wildcard' })
    expect(conflict(candidate('a', 'NS'), [])).toBeNull()
    expect(conflict(candidate('a', 'DS'), [])).toBeNull()
  })
})

describe('a whole zone', () => {
  it('is judged record by record against those before', () => {
    const records = [
      record('a', 'A', '192.0.2.1'),
      record('a', 'A', '192.0.2.2'),
      record('a', 'CNAME'),
      record('a', 'A', '192.0.2.2'),
      record('b', 'CNAME'),
      record('b', 'TXT', '"x"'),
      record('@', 'NS'),
    ]
    const found = conflictsWithin(records, 'example.com').map(
      (item) => `${records.indexOf(item.record)} ${item.conflict.code}`,
    )
    expect(found).toEqual(['2 beside_cname', '3 duplicate', '5 beside_cname', '6 ns_at_apex'])
  })

  it('has no null MX beside another, whichever comes first, and no two SPF records', () => {
    const records = [
      record('a', 'MX', '10 m.example.net'),
      record('a', 'MX', '20 m.example.net'),
      record('a', 'MX', '0 .'),
      record('b', 'MX', '0 .'),
      record('b', 'MX', '10 m.example.net'),
      record('@', 'TXT', '"x"'),
      record('@', 'TXT', '"v=spf1 -all"'),
      record('@', 'TXT', '"V=SPF1"'),
      record('@', 'TXT', '"v=spf10"'),
      record('c', 'TXT', '"v=spf1 -all"'),
    ]
    const found = conflictsWithin(records, 'example.com').map(
      (one) => `${records.indexOf(one.record)} ${one.conflict.code}`,
    )
    expect(found).toEqual(['2 beside_null_mx', '4 beside_null_mx', '7 second_spf'])
  })

  it('has no DS without NS, no MX at a CNAME and nothing below a DNAME', () => {
    const records = [
      record('signed', 'DS', '1 8 2 AB'),
      record('signed', 'NS'),
      record('bare', 'DS', '1 8 2 AB'),
      record('@', 'MX', '10 mail.example.com'),
      record('@', 'MX', '10 mail.example.net'),
      record('mail', 'CNAME'),
      record('b.a.moved', 'A', '192.0.2.1'),
      record('moved', 'DNAME'),
      record('moved', 'A', '192.0.2.1'),
      record('notmoved', 'A', '192.0.2.1'),
      record('moved', 'NS'),
      record('*.x', 'DNAME'),
      record('moved', 'DNAME', 'z.example.net'),
    ]
    const found = conflictsWithin(records, 'example.com').map(
      (one) => `${records.indexOf(one.record)} ${one.conflict.code}`,
    )
    expect(found.sort()).toEqual([
      '10 beside_dname',
      '11 dname_at_wildcard',
      '12 only_one',
      '2 ds_without_ns',
      '3 mx_at_cname',
      '6 below_dname',
    ])
    expect(conflictsWithin([record('@', 'DNAME'), record('www', 'A')], 'example.com')[0]).toMatchObject({
      conflict: { code: 'below_dname' },
    })
  })

  it('of many records at one name is judged in linear steps', async () => {
    const texts = (size: number) => Array.from({ length: size }, (_, index) => record('a', 'TXT', `"${index}"`))
    expect(conflictsWithin(texts(48_000), 'example.com')).toEqual([])
    await takesLinearSteps(1_000, (size) => counting.conflictsWithin(texts(size), 'example.com'))
  })

  it('of 8,000 types at one name is judged in linear steps, and beside a CNAME refused', async () => {
    const types = (size: number) =>
      Array.from({ length: size }, (_, index) => record('a', `TYPE${300 + index}`, '\\# 1 00'))
    expect(conflictsWithin(types(8_000), 'example.com')).toEqual([])
    await takesLinearSteps(1_000, (size) => counting.conflictsWithin(types(size), 'example.com'))
    const beside = [record('a', 'TYPE300', '\\# 1 00'), record('a', 'CNAME', 'b.example.net')]
    expect(conflictsWithin(beside, 'example.com')).toMatchObject([{ conflict: { code: 'beside_cname' } }])
    expect(conflictsWithin(beside.toReversed(), 'example.com')).toMatchObject([{ conflict: { code: 'beside_cname' } }])
  })
})

describe('a record that stands for another name', () => {
  it('does not point at itself', () => {
    const points = (name: string, type: RecordType, value: string) =>
      pointsAtItself({ name, type, value }, 'example.com') !== null
    expect(points('a', 'CNAME', 'a.example.com')).toBe(true)
    expect(points('@', 'ALIAS', 'example.com')).toBe(true)
    expect(points('a', 'DNAME', 'b.a.example.com')).toBe(true)
    expect(points('a', 'CNAME', 'b.a.example.com')).toBe(false)
    expect(points('a', 'DNAME', 'example.com')).toBe(false)
    expect(points('a', 'NS', 'a.example.com')).toBe(false)
  })
})

describe('a delegation', () => {
  it('hides what is at and below it, but not itself, its DS and its glue', () => {
    const records = [
      record('sub', 'NS', 'ns.sub.example.com'),
      record('sub', 'NS', 'ns.example.net'),
      record('sub', 'DS', '1 8 2 AB'),
      record('ns.sub', 'A', '192.0.2.1'),
      record('ns.sub', 'TXT', '"hidden"'),
      record('www.sub', 'A', '192.0.2.2'),
      record('sub', 'TXT', '"hidden"'),
      record('deep.sub', 'NS', 'ns.example.net'),
      record('notsub', 'A', '192.0.2.3'),
      record('@', 'A', '192.0.2.4'),
    ]
    const hidden = hiddenBelow(records, 'example.com')
    expect(hidden.map((item) => records.indexOf(item.record as never))).toEqual([4, 5, 6, 7])
    expect(hidden.every((item) => item.delegation === 'sub')).toBe(true)
  })

  it('that points at its own name has its addresses there as glue', () => {
    const records = [record('sub', 'NS', 'sub.example.com'), record('sub', 'AAAA', '::1')]
    expect(hiddenBelow(records, 'example.com')).toEqual([])
  })

  it('at the apex hides nothing', () => {
    expect(hiddenBelow([record('@', 'NS'), record('a', 'A', '192.0.2.1')], 'example.com')).toEqual([])
  })
})
