import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { NameMap } from '../../../src/engines/nameserver/zones/name-map.ts'
import { counted, stepsOf } from '../../helpers/steps/steps.ts'

const filled = (from: number, to: number, map = new NameMap<number>()) => {
  const draft = map.edit()
  for (let number = from; number < to; number++) draft.set(`name-${number}`, number)
  return draft.done()
}
const inOrder = (map: Iterable<[string, number]>) => [...map].sort(([one], [other]) => (one < other ? -1 : 1))

test('has what was set and not deleted, and leaves the map that it was made from as it is', () => {
  const step = fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), value: fc.option(fc.nat(3)) })
  fc.assert(
    fc.property(fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 6 }), (changes) => {
      let [map, model] = [new NameMap<number>(), new Map<string, number>()]
      for (const steps of changes) {
        const [before, known] = [map, new Map(model)]
        const draft = map.edit()
        for (const { name, value } of steps) {
          if (value === null) draft.delete(name)
          else draft.set(name, value)
          if (value === null) model.delete(name)
          else model.set(name, value)
          expect([draft.get(name), draft.has(name)]).toEqual([model.get(name), model.has(name)])
        }
        map = draft.done()
        expect([inOrder(map), map.size]).toEqual([inOrder(model), model.size])
        expect(inOrder(before)).toEqual(inOrder(known))
        const names = ['a', 'b', 'c', 'd'].filter((name) => known.get(name) !== model.get(name))
        expect(map.differing(before, 4)?.sort()).toEqual(names)
        model = new Map(model)
      }
    }),
    { numRuns: 500 },
  )
})

test('is the same map after it has grown and shrunk, and shares all but what changed', () => {
  const small = filled(0, 1_000)
  const large = filled(1_000, 30_000, small)
  expect([small.size, large.size, large.get('name-0'), large.get('name-29999')]).toEqual([1_000, 30_000, 0, 29_999])
  expect([large.shares(small), large.differing(small, 100_000)]).toEqual([false, null])
  const changed = filled(30_000, 30_001, large)
  expect([changed.shares(large), changed.differing(large, 1)]).toEqual([true, ['name-30000']])
  expect(large.differing(filled(0, 30_000), 100_000)).toEqual([])
  const draft = large.edit()
  for (let number = 2_000; number < 30_000; number++) draft.delete(`name-${number}`)
  const left = draft.done()
  expect([left.size, left.has('name-1999'), left.has('name-2000'), [...left].length]).toEqual([
    2_000,
    true,
    false,
    2_000,
  ])
  expect([left.shares(large), left.differing(filled(0, 2_000), 1)]).toEqual([false, []])
  expect(large.size).toBe([...large].length)
})

test('one that is large from the start is never divided while it grows, and is like any other when it is not', async () => {
  const { NameMap } = await counted<typeof import('../../../src/engines/nameserver/zones/name-map.ts')>(
    'src/engines/nameserver/zones/name-map.ts',
  )
  const draft = NameMap.large<number>().edit()
  let most = 0
  for (let number = 0; number < 16_300; number++) draft.set(`name-${number}`, number)
  for (let number = 16_300; number < 16_500; number++) {
    most = Math.max(most, await stepsOf(() => draft.set(`name-${number}`, number)))
  }
  // One call, and a loop over the characters of a name; a group is copied with its parts.
  expect(most).toBeLessThan(500)
  expect(draft.done().size).toBe(16_500)
  const few = NameMap.large<number>().edit()
  few.set('name-0', 0)
  expect(few.done().differing(filled(0, 1, new NameMap()), 1)).toEqual([])
})
