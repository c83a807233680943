// What secondaries get of a changed signed zone: the difference makes the one version from the other, whatever changed.
import { expect, test } from 'vitest'
import { differenceOf, zoneRecords } from '../../../../src/engines/nameserver/transfer/records.ts'
import type { OwnedSet } from '../../../../src/engines/nameserver/zones/lookup.ts'
import { ZoneTable } from '../../../../src/engines/nameserver/zones/zone-table.ts'
import { constants, nowhere } from '../zones.ts'
import { type Denial, unreallySigned } from './unreal.ts'

const always = ['@ MX 10 mail.example.com', 'mail A 192.0.2.1', '*.wild A 192.0.2.2']
const sometimes = [
  '@ A 192.0.2.3',
  'www A 192.0.2.4',
  'new A 192.0.2.5',
  'a.b.c A 192.0.2.6',
  'b.c TXT "x"',
  '*.c A 192.0.2.7',
  'sub NS ns.sub.example.com',
  'ns.sub A 192.0.2.8',
  'x.sub A 192.0.2.9',
  'other NS ns.example.net',
  'flat ALIAS mail.example.com',
  'mail A 192.0.2.10',
  'flat2 ALIAS q.wild.example.com',
  'q.wild A 192.0.2.11',
  '_acme-challenge.d.wild CHALLENGE "y"',
  'away DNAME example.net',
]

const shown = ({ owner, set: { type, ttl, rdatas } }: OwnedSet) =>
  rdatas.map(({ head, names, tail }) => [owner, type, ttl, head.toString('hex'), names, tail.toString('hex')].join(' '))

test.each<Denial>(['nsec', 'nsec3'])('a difference leads from one version to the next, %s', (denial) => {
  const table = new ZoneTable(constants, () => {})
  let state = denial === 'nsec' ? 1 : 2
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
  const put = (serial: number, lines: ReadonlySet<string>) => {
    const text = [...always, ...sometimes.filter((line) => lines.has(line))].join('\n')
    const row = unreallySigned(table, 'example.com', text, serial, denial)
    table.apply([row.name], [row])
    return table.get(row.name)!
  }
  const recordsOf = (source: ReturnType<typeof put>) =>
    [...zoneRecords(table.draft(source), nowhere)].flatMap(shown).sort()
  const lines = new Set<string>()
  let before = put(1, lines)
  let had = recordsOf(before)
  for (let serial = 2; serial < 80; serial++) {
    for (let changes = 1 + random(3); changes > 0; changes--) {
      const line = sometimes[random(sometimes.length)]!
      if (!lines.delete(line)) lines.add(line)
    }
    const after = put(serial, lines)
    const has = recordsOf(after)
    const { removed, added } = differenceOf(table, before, after, nowhere)!
    const left = new Set(had)
    for (const one of removed.flatMap(shown)) expect(left.delete(one), `${one} was there`).toBe(true)
    for (const one of added.flatMap(shown)) left.add(one)
    expect([...left].sort(), [...lines].join('\n')).toEqual(has)
    before = after
    had = has
  }
})
