// The chain of a large zone, made in steps and found in by the octets of a question: the same as by the names.
import { expect, test } from 'vitest'
import {
  buildChain,
  buildChainInSteps,
  entryOfSet,
  type SignedZone,
} from '../../../../src/engines/nameserver/dnssec/chain.ts'
import { gapsOf } from '../../../../src/engines/nameserver/dnssec/gap-tables.ts'
import { recordsFrom, ZoneTable } from '../../../../src/engines/nameserver/zones/zone-table.ts'
import { until } from '../../../helpers/until.ts'
import { nameOctets, question } from '../packets.ts'
import { constants } from '../zones.ts'
import type { Denial } from './unreal.ts'

const names = 3_500
const origin = nameOctets('example.com').toString('latin1')

function largeZone(denial: Denial): SignedZone {
  const lines = Array.from({ length: names }, (_, n) => `A 300 host-${(n * 7919) % names} 192.0.2.1`)
  const row = { name: 'example.com', serial: 1, accountId: 'acc_1', records: recordsFrom(origin, lines.join('\n')) }
  const signing = { denial, cdsDelete: false, keys: [], signatures: '', chain: null }
  return new ZoneTable(constants, () => {}).draft({ ...row, signing }) as SignedZone
}

test.each<Denial>(['nsec', 'nsec3'])('a chain is the same in steps, and so are its gaps, %s', async (denial) => {
  const zone = largeZone(denial)
  const chain = await buildChainInSteps(zone)
  expect([...chain]).toEqual([...buildChain(zone)])
  expect(chain.parts.length).toBeGreaterThan(4)
  // Made in steps, too.
  expect(gapsOf(zone)).toBeNull()
  const gaps = await until(() => gapsOf(zone))
  const entryOfGap = (gap: number) => chain.parts[Math.floor(gap / 4096)]![gap % 4096]
  const odd = ['\x00', '\x01', '-', 'zzzz', 'HOST-5', 'host-5\x00', 'host-5\x01x', 'host-\xff', '*']
  const asked = [
    ...odd,
    ...Array.from({ length: 2_000 }, (_, n) => `${'HhxZa0'[n % 6]}ost-${(n * 31) % 4_000}-${n % 7}`),
  ]
  for (const label of asked) {
    for (const name of [`${label}.example.com`, `${label}.host-7.example.com`]) {
      const below = name.includes('host-7.') ? 'host-7.example.com' : 'example.com'
      const packet = question(name, 'A')
      const nameEnd = packet.length - 4
      const gap = gaps.find(packet, nameEnd, nameEnd - nameOctets(below).length)
      const owner = nameOctets(name.toLowerCase()).toString('latin1')
      expect(entryOfGap(gap), name).toBe(entryOfSet(zone, owner, 1))
    }
  }
})
