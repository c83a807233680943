// Names that signers get wrong: any octet, the longest labels and names, wildcards everywhere. BIND and ldns check the zone.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMissing, startWorld, type World } from '../transfer/world.ts'
import { faultsOf, signZone, transferred } from './world.ts'

const label = 'l'.repeat(63)
// With `.shapes.com` behind it, 255 octets in a packet.
const longest = `${label}.${label}.${label}.${'m'.repeat(255 - 3 * 64 - 1 - 12)}`
// Without `\064`: ldns takes an @ in a record for the origin, escaped or not.
const odd = ['\\046', 'a\\046b', '\\000', '\\255\\128', '\\032', 'x\\009y', '\\034\\059', 'UPPER', 'Mixed.cASE']

const records: [type: string, name: string, value: string][] = [
  ['A', '*', '192.0.2.1'],
  ['TXT', '*.x', '"a star"'],
  ['A', label, '192.0.2.3'],
  ['A', longest, '192.0.2.4'],
  ['CNAME', `*.${label}`, 'x.shapes.com'],
  ['NS', `cut.${label}`, 'ns.example.net'],
  ['A', `hidden.cut.${label}`, '192.0.2.5'],
  ['DNAME', 'away', 'other.example'],
  ['CNAME', 'near', 'deep.other.com'],
  ['ALIAS', 'nowhere', 'nothing.nowhere.shapes.com'],
  ['ALIAS', '*.alias', 'near.shapes.com'],
  ...odd.map((name, index): [string, string, string] => ['A', name, `192.0.2.${index + 10}`]),
  ...odd.map((name): [string, string, string] => ['TXT', `x.${name}.y`, '"below"']),
]

describe.skipIf(isMissing('dig', 'dnssec-verify', 'ldns-verify-zone')).each(['nsec', 'nsec3'] as const)(
  'odd names with %s',
  (denial) => {
    let world: World
    beforeAll(async () => {
      world = await startWorld()
      await world.addDomain('shapes.com')
    })
    afterAll(() => world.stop())

    test('are signed as BIND and ldns sign them', async () => {
      for (const [type, name, value] of records) await world.addRecord('shapes.com', type, name, value)
      await signZone(world, 'shapes.com', denial)
      const text = await transferred(world, 'shapes.com')
      expect(await faultsOf('shapes.com', text)).toBe('')
    })
  },
)
