// Large zones, which have their records by name: they answer as small ones do, and a change touches only its names.
import * as fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { wireName } from '../../../src/dns/packet/wire-names.ts'
import { changedNames, linesNamed } from '../../../src/engines/nameserver/zones/changed-lines.ts'
import { openZone, type Zone } from '../../../src/engines/nameserver/zones/zone.ts'
import { emptyRecords, keyOf, RecordsByName } from '../../../src/engines/nameserver/zones/zone-records.ts'
import { joinedRows } from '../../../src/engines/nameserver/zones/zone-table.ts'
import { challengeType } from '../../../src/services/dns/zones/served-zones.ts'
import { addressesIn, askUdp } from './packets.ts'
import { ask, constants, parseLines, type Served, serveZones, zoneOf } from './zones.ts'

let served: Served
beforeEach(async () => {
  served = await serveZones({ rateLimit: null })
})
afterEach(() => served.stop())

const hosts = (count: number, third = 0) =>
  Array.from({ length: count }, (_, n) => `h${n} A 10.${third}.${n >> 8}.${n & 255}`).join('\n')
const special = `
  @ ALIAS target.example.net
  @ 60 ALIASED 192.0.2.77
  *.wild A 192.0.2.5
  a.empty.parent TXT "x"
  sub NS ns.example.net
  sub DS 1 13 2 ${'00'.repeat(32)}
  c CNAME h7.example.com`
const addressOf = async (name: string) => addressesIn((await askUdp(served.port, name, 'A')).answer)[0]

/** All that a zone has, in an order of its own. */
function contentOf(zone: Zone) {
  const nodes = [...zone.nodes].map(([name, { sets, alias, cut }]) => {
    const shown = sets.map(({ type, ttl, rdatas }) => [type, ttl, ...rdatas.map((one) => JSON.stringify(one)).sort()])
    shown.sort(([one], [other]) => Number(one) - Number(other))
    return JSON.stringify([name, shown, alias, cut])
  })
  return { ...zone, nodes: nodes.sort(), keys: [...zone.nodes.keys()].sort() }
}

const line = ({ type, ttl, name, value }: { type: string; ttl: number; name: string; value: string }) =>
  `${type} ${ttl} ${name} ${value}`
const linesOf = (text: string) => parseLines(text).map(line)
function byName(lines: readonly string[]): RecordsByName {
  const draft = emptyRecords(wireName('example.com')).edit()
  draft.add(lines.join('\n'))
  return draft.done()
}
const open = (records: RecordsByName) => openZone('example.com', 7, records, constants)

test('a long name is read once for all who ask for it, in every version that has it, and a challenge stays in its own', () => {
  const text = `"${'x'.repeat(250)}"`
  const lines = Array.from({ length: 20 }, (_, n) => `TXT 300 *.long "${n}" ${text}`)
  const first = byName([...linesOf(hosts(10)), ...lines])
  const second = first.change(['h1'], 'A 300 h1 192.0.2.9')
  const setsAt = (records: RecordsByName) => open(records).nodes.get(wireName('*.long.example.com'))!.sets
  const [set] = setsAt(first)
  expect(set!.rdatas).toHaveLength(20)
  expect(setsAt(first)[0]!.rdatas).toBe(set!.rdatas)
  expect(setsAt(second)[0]!.rdatas).toBe(set!.rdatas)
  const challenged = second.change([], `${challengeType} 60 *.long token`)
  expect(setsAt(challenged)[0]!.rdatas).toHaveLength(21)
  expect(setsAt(second)[0]!.rdatas).toHaveLength(20)
  expect(setsAt(second)).toHaveLength(1)
})

test('a large zone has the names and answers of one that is built', async () => {
  served.put('example.com', `${hosts(8_000)}\n${special}`)
  const source = served.table.get('example.com')!
  expect(source.records).toBeInstanceOf(RecordsByName)
  const [zone, whole] = [served.table.zoneOf(source), zoneOf(`${hosts(8_000)}\n${special}`)]
  expect([...zone.nodes.keys()].sort()).toEqual([...whole.nodes.keys()].sort())
  for (const [name, type] of [
    ['h1.example.com', 'A'],
    ['any.wild.example.com', 'A'],
    ['empty.parent.example.com', 'A'],
    ['missing.example.com', 'A'],
    ['x.sub.example.com', 'A'],
    ['sub.example.com', 'DS'],
    ['www.example.com', 'A'],
  ] as const) {
    const { found: one, ...shown } = ask(zone, name, type)
    const { found: other, ...expected } = ask(whole, name, type)
    expect(shown.answer, name).toEqual(expected.answer)
    expect([shown.rcode, one.authoritative], name).toEqual([expected.rcode, other.authoritative])
  }
})

test.each([
  ['c.example.com', '10.0.0.7'],
  ['any.wild.example.com', '192.0.2.5'],
  ['example.com', '192.0.2.77'],
])('the first question of all may be for %s', async (name, address) => {
  served.put('example.com', `${hosts(4_000)}\n${special}`)
  const { answer, rcode } = await askUdp(served.port, name, 'A')
  expect(rcode).toBe('NOERROR')
  expect(addressesIn(answer).at(-1)).toBe(address)
})

test('a large zone can be replaced, become small, and go', async () => {
  served.put('example.com', hosts(8_000))
  expect(await addressOf('h1.example.com')).toBe('10.0.0.1')
  served.put('example.com', hosts(8_000, 1))
  expect(await addressOf('h1.example.com')).toBe('10.1.0.1')
  served.put('example.com', 'h1 A 10.2.0.1')
  expect(await addressOf('h1.example.com')).toBe('10.2.0.1')
  served.remove('example.com')
  expect((await askUdp(served.port, 'h1.example.com', 'A')).rcode).toBe('REFUSED')
})

test('a large zone pushes no other out of memory', () => {
  const names = Array.from({ length: 300 }, (_, n) => `small${n}.example.net`)
  for (const name of names) served.put(name, 'www A 192.0.2.9')
  const zones = names.map((name) => served.table.zoneOf(served.table.get(name)!))
  served.put('example.com', hosts(60_000))
  served.table.zoneOf(served.table.get('example.com')!)
  expect(names.map((name) => served.table.zoneOf(served.table.get(name)!)).every((zone, n) => zone === zones[n])).toBe(
    true,
  )
})

test('DS of a delegated zone is the parent’s', async () => {
  served.put('example.com', `${hosts(4_000)}\n${special}\nsub2 TXT "NS 300 sub2 x"`)
  served.put('sub.example.com', 'x A 192.0.2.2')
  served.put('sub2.example.com', 'x A 192.0.2.2')
  expect((await askUdp(served.port, 'sub.example.com', 'DS')).answer).toHaveLength(1)
  served.put('example.com', `${hosts(4_000, 1)}\nsub2 TXT "NS 300 sub2 x"`)
  expect((await askUdp(served.port, 'sub2.example.com', 'DS')).authority[0]!.name).toBe('sub2.example.com')
})

test('any changes by name lead to the zone that is built from its records', () => {
  const names = ['@', 'www', 'a', 'b.a', 'c.b.a', '*.a', '*', 'x.y.z', 'y.z', '_acme-challenge.a']
  const record = fc
    .tuple(fc.constantFrom(...names), fc.constantFrom('A', 'TXT', 'NS', 'ALIAS', 'CHALLENGE'), fc.nat(3))
    .map(([name, type, n]) => {
      if (type === 'CHALLENGE') return `CHALLENGE 30 _acme-challenge${/^[@_]/.test(name) ? '' : `.${name}`} "${n}"`
      const values: Record<string, string> = { A: `192.0.2.${n}`, TXT: `"${n}"`, NS: `ns${n}.test`, ALIAS: 'x.test' }
      return `${type} 300 ${type === 'NS' && name === '@' ? 'a' : name} ${values[type]}`
    })
  const version = fc.uniqueArray(record, { maxLength: 12 })
  const nameIn = (line: string) => line.split(' ', 3)[2]!
  const isExtra = (line: string) => line.startsWith('CHALLENGE')
  fc.assert(
    fc.property(fc.array(version, { minLength: 1, maxLength: 5 }), (versions) => {
      let lines: string[] = []
      let records = byName([])
      for (const next of versions) {
        const before = records
        const differing = [...lines, ...next].filter((one) => lines.includes(one) !== next.includes(one))
        const changed = new Set(differing.filter((one) => !isExtra(one)).map(nameIn))
        const text = next.filter((one) => isExtra(one) || changed.has(nameIn(one))).sort()
        records = before.change(changed, text.join('\n'))
        // What the transfers see of the change.
        expect(changedNames(before, records)).toEqual(new Set(differing.map(nameIn)))
        expect(linesNamed(records, new Set(names)).sort()).toEqual(
          next.filter((one) => names.includes(nameIn(one))).sort(),
        )
        lines = next
      }
      const whole = zoneOf(
        [...lines]
          .sort()
          .map((one) => one.replace(/^(\S+) (\d+) (\S+) (.*)$/, '$3 $2 $1 $4'))
          .join('\n'),
      )
      expect(contentOf(open(records))).toEqual(contentOf(whole))
    }),
    { numRuns: 500 },
  )
})

test('a version stays as it was when the next one is made', () => {
  const before = byName(linesOf(`${hosts(2_000)}\n${special}`))
  const content = contentOf(open(before))
  const after = before.change(['h1', 'new.below.h2', 'sub'], 'A 300 new.below.h2 192.0.2.1')
  expect(contentOf(open(before))).toEqual(content)
  expect([after.has(keyOf('below.h2', after.origin)), after.has(keyOf('h1', after.origin))]).toEqual([true, false])
  expect(after.hasCuts).toBe(false)
  expect(changedNames(before, after)).toEqual(new Set(['h1', 'new.below.h2', 'sub']))
})

test('a change of very many lines is not compared', () => {
  const [before, after] = [byName(linesOf(hosts(8_000))), byName(linesOf(hosts(8_000, 1)))]
  expect(changedNames(before, after)).toBeNull()
  expect(changedNames(hosts(8_000), hosts(8_000, 1))).toBeNull()
  expect(changedNames(hosts(8_000), `${hosts(8_000)}\nA 300 new 192.0.2.1`)).toEqual(new Set(['new']))
})

test('rows of the table, of which a large zone has several, bring every record back', () => {
  served.put('example.com', `${hosts(4_000)}\n${special}\n_acme-challenge 30 CHALLENGE "x"`)
  served.put('example.net', 'www A 192.0.2.1')
  const rows = [...served.table.rows()]
  expect(rows.length).toBeGreaterThan(2)
  const [first, second] = [...joinedRows(rows)]
  expect(second).toMatchObject({ name: 'example.net', records: 'A 300 www 192.0.2.1' })
  expect(contentOf(open(byName(first!.records.split('\n'))))).toEqual(
    contentOf(open(served.table.get('example.com')!.records as RecordsByName)),
  )
})
