// A large zone is signed in pieces between which others get their turn.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import { buildChain, buildChainInSteps, type SignedZone } from '../../../../src/engines/nameserver/dnssec/chain.ts'
import type { NeededSignature, Signer } from '../../../../src/engines/nameserver/dnssec/signer.ts'
import { createVersions } from '../../../../src/engines/nameserver/dnssec/versions.ts'
import { type NameMap, NameMapDraft } from '../../../../src/engines/nameserver/zones/name-map.ts'
import { signatureOctets } from '../../../../src/engines/nameserver/zones/signing.ts'
import { emptyRecords } from '../../../../src/engines/nameserver/zones/zone-records.ts'
import { ZoneTable } from '../../../../src/engines/nameserver/zones/zone-table.ts'
import { constants, nowhere } from '../zones.ts'

const names = 5_000
const key = { id: 'zky_1', tag: 4711, publicKey: '', published: true, signing: true, announced: true }
const state = { name: 'large.test', id: 'dom_1', accountId: 'acc_1', serial: 1, verified: true, refused: false }
const signedBy = { denial: 'nsec' as const, cdsDelete: false, keys: [key] }

const signer: Signer = {
  signs: true,
  load: async () => {},
  async complete(needed: readonly NeededSignature[]) {
    for (const one of needed) one.octets = 'x'.repeat(signatureOctets)
  },
  missingOf: (needed: readonly NeededSignature[]) => needed.filter(({ octets }) => octets === null),
  signAll: async () => [],
}

afterEach(() => void vi.restoreAllMocks())

test('no piece of it keeps more than a thousand signatures', async () => {
  const draft = emptyRecords(wireName('large.test')).edit()
  draft.add(Array.from({ length: names }, (_, index) => `A 300 n${index} 192.0.2.1`).join('\n'))
  const row = { ...state, records: draft.done(), signing: signedBy }
  const table = new ZoneTable(constants, () => {})
  const versions = createVersions({
    signer,
    outside: nowhere,
    served: () => undefined,
    draft: (row) => table.draft(row),
  })
  let [steps, before, longest, isDone] = [0, 0, 0, false]
  const { set } = NameMapDraft.prototype
  vi.spyOn(NameMapDraft.prototype, 'set').mockImplementation(function (this: NameMapDraft<unknown>, name, value) {
    steps++
    set.call(this, name, value)
  })
  const watching = (async () => {
    for (; !isDone; before = steps) {
      await nextTurn()
      longest = Math.max(longest, steps - before)
    }
  })()
  const { signing } = await versions.completeAlone(row)
  isDone = true
  await watching
  expect((signing!.signatures as NameMap<string>).size).toBeGreaterThanOrEqual(2 * names)
  expect(longest).toBeLessThanOrEqual(1_000)
})

test('no piece of its chain looks at more than fifty names', async () => {
  const draft = emptyRecords(wireName('large.test')).edit()
  draft.add(Array.from({ length: names }, (_, index) => `A 300 n${index} 192.0.2.1`).join('\n'))
  const table = new ZoneTable(constants, () => {})
  const zone = table.draft({ ...state, records: draft.done(), signing: { ...signedBy, signatures: '', chain: null } })
  let [looked, before, longest, isDone] = [0, 0, 0, false]
  const { nodes } = zone
  const counted = {
    get: (name: string) => nodes.get(name),
    has: (name: string) => nodes.has(name),
    keys: () => nodes.keys(),
    *[Symbol.iterator]() {
      for (const one of nodes) {
        looked++
        yield one
      }
    },
  }
  const watching = (async () => {
    for (; !isDone; before = looked) {
      await nextTurn()
      longest = Math.max(longest, looked - before)
    }
  })()
  const chain = await buildChainInSteps({ ...zone, nodes: counted } as SignedZone)
  isDone = true
  await watching
  expect([...chain]).toEqual([...buildChain(zone as SignedZone)])
  expect(longest).toBeLessThanOrEqual(50)
})
