// The states of a signed zone: every step, and that none is taken before caches have forgotten what it takes away.
import { describe, expect, test } from 'vitest'
import { dnssecStates } from '../../../src/schemas/dnssec.ts'
import {
  apexTtl,
  type DnssecState,
  decide,
  dnssecTransitions,
  maxDsTtl,
  type Sighting,
  type SigningState,
} from '../../../src/services/dns/dnssec/dnssec-states.ts'

const now = new Date('2026-11-22T12:00:00Z')
const slack = 600
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1_000)
const day = 86_400

const key = (id: string, age: number, announced = true) => ({ id, announced, createdAt: ago(age) })
const nothing: Sighting = { shown: [], everywhere: [], anywhere: [], foreign: false, ttl: 0 }
const shows = (...ids: string[]): Sighting => ({
  shown: ids,
  everywhere: ids,
  anywhere: ids,
  foreign: false,
  ttl: 7_200,
})
const foreign: Sighting = { ...nothing, foreign: true, ttl: 7_200 }

const standing = (state: DnssecState, changes: Partial<SigningState> = {}): SigningState => ({
  wanted: true,
  state,
  keys: state === 'unsigned' ? [] : [key('a', 10 * day)],
  maxTtl: 300,
  dsTtl: null,
  dsSince: null,
  goneSince: null,
  checkingSince: now,
  parent: nothing,
  served: true,
  ...changes,
})
const next = (state: DnssecState, changes: Partial<SigningState> = {}) => decide(standing(state, changes), now)

describe('one key', () => {
  test.each<[string, DnssecState, Partial<SigningState>, DnssecState, string | null]>([
    ['nobody wants it', 'unsigned', { wanted: false }, 'unsigned', null],
    ['the parent was not asked', 'unsigned', { parent: null }, 'unsigned', null],
    ['the DS of another provider is at the parent', 'unsigned', { parent: foreign }, 'unsigned', null],
    ['it is wanted, and there is no DS', 'unsigned', {}, 'signing', 'start'],
    ['caches may have unsigned answers', 'signing', { keys: [key('a', apexTtl, false)] }, 'signing', null],
    ['they have none', 'signing', { keys: [key('a', apexTtl + slack, false)] }, 'awaiting_ds', 'announce'],
    ['a nameserver lacks the key', 'signing', { keys: [key('a', day, false)], served: false }, 'signing', null],
    ['a record has a long TTL', 'signing', { keys: [key('a', 9_000, false)], maxTtl: day }, 'signing', null],
    ['its DS is there already', 'signing', { keys: [key('a', 5, false)], parent: shows('a') }, 'active', 'announce'],
    ['the time is over though the parent is silent', 'signing', { parent: null }, 'awaiting_ds', null],
    ['no DS yet', 'awaiting_ds', {}, 'awaiting_ds', null],
    ['the DS of another', 'awaiting_ds', { parent: foreign }, 'awaiting_ds', null],
    ['the DS', 'awaiting_ds', { parent: shows('a') }, 'active', null],
    ['it is there', 'active', { parent: shows('a') }, 'active', null],
    ['the parent does not answer', 'active', { parent: null }, 'active', null],
    ['it went', 'active', {}, 'awaiting_ds', null],
    ['it was replaced by a foreign one', 'active', { parent: foreign }, 'awaiting_ds', null],
    ['turned off', 'signing', { wanted: false }, 'leaving', 'leave'],
    ['turned off', 'awaiting_ds', { wanted: false, parent: null }, 'leaving', 'leave'],
    ['turned off', 'active', { wanted: false, parent: null }, 'leaving', 'leave'],
    ['turned on again', 'leaving', { parent: null }, 'signing', 'return'],
    ['never announced a DS', 'leaving', { wanted: false, keys: [key('a', 9 * day, false)] }, 'unsigned', 'stop'],
    ['a parent may have read it', 'leaving', { wanted: false, goneSince: ago(day) }, 'leaving', null],
    ['no parent wants it', 'leaving', { wanted: false, goneSince: ago(day + slack) }, 'unsigned', 'stop'],
    ['the parent is silent', 'leaving', { wanted: false, parent: null, goneSince: ago(9 * day) }, 'leaving', null],
    ['the DS is there', 'leaving', { wanted: false, parent: shows('a'), dsTtl: 60 }, 'leaving', null],
    ['it has just gone', 'leaving', { wanted: false, dsTtl: 7_200 }, 'leaving', null],
    ['caches have it', 'leaving', { wanted: false, dsTtl: 7_200, goneSince: ago(7_200) }, 'leaving', null],
    ['no cache has it', 'leaving', { wanted: false, dsTtl: 7_200, goneSince: ago(7_200 + slack) }, 'unsigned', 'stop'],
    ['a foreign DS stays', 'leaving', { wanted: false, parent: foreign, goneSince: ago(2 * day) }, 'unsigned', 'stop'],
  ])('%s: %s', (_why, state, changes, to, step) => {
    const decided = next(state, changes)
    expect(decided).toMatchObject({ state: to, step })
  })

  test('one server of the parent that still shows the DS keeps the zone signed', () => {
    const parent = { ...nothing, anywhere: ['a'], ttl: 60 }
    expect(next('leaving', { wanted: false, parent, dsTtl: 60, goneSince: ago(day) })).toMatchObject({
      state: 'leaving',
      goneSince: null,
    })
  })

  test('an absurd TTL of the parent is not waited for', () => {
    const parent = { ...shows('a'), ttl: 2 ** 31 - 1 }
    expect(next('active', { parent }).dsTtl).toBe(maxDsTtl)
  })

  test('a TTL that was once longer is remembered', () => {
    expect(next('active', { parent: shows('a'), dsTtl: day }).dsTtl).toBe(day)
  })
})

describe('a rollover', () => {
  const both = (age: number, announced: boolean) => [key('a', 99 * day, !announced), key('b', age, announced)]

  test('the new key is announced when every cache has it', () => {
    expect(next('active', { keys: both(apexTtl, false), parent: shows('a') }).step).toBeNull()
    const lagging = { keys: both(apexTtl + slack, false), parent: shows('a'), served: false }
    expect(next('active', lagging).step).toBeNull()
    const due = next('active', { keys: both(apexTtl + slack, false), parent: shows('a') })
    expect(due).toMatchObject({ state: 'active', step: 'announce', dsSince: null })
  })

  test('the old key goes when the new DS was everywhere for its TTL, and no set is signed by the old key alone', () => {
    const keys = both(9 * day, true)
    const at = (changes: Partial<SigningState>) =>
      next('active', { keys, dsTtl: 7_200, parent: shows('b'), ...changes })
    expect(at({ parent: shows('a') })).toMatchObject({ step: null, dsSince: null })
    expect(at({})).toMatchObject({ step: null, dsSince: now })
    expect(at({ dsSince: ago(7_200) }).step).toBeNull()
    expect(at({ dsSince: ago(7_200 + slack) }).step).toBe('withdraw')
    expect(at({ dsSince: ago(day), parent: null }).step).toBeNull()
    expect(at({ dsSince: ago(day), parent: { ...shows('b'), everywhere: [] } })).toMatchObject({
      step: null,
      dsSince: null,
    })
    expect(at({ dsSince: ago(day), keys: both(day / 2, true), maxTtl: day }).step).toBeNull()
    expect(at({ dsSince: ago(day), parent: shows('a', 'b') }).step).toBe('withdraw')
  })

  test('without any DS it waits for that of the new key', () => {
    expect(next('active', { keys: both(9 * day, true) })).toMatchObject({ state: 'awaiting_ds', step: null })
    expect(next('awaiting_ds', { keys: both(9 * day, true), parent: shows('b') })).toMatchObject({
      state: 'active',
      step: null,
      dsSince: now,
    })
  })
})

describe('the next check', () => {
  const seconds = (state: DnssecState, changes: Partial<SigningState> = {}) => {
    const { nextCheckAt } = next(state, changes)
    return nextCheckAt && (nextCheckAt.getTime() - now.getTime()) / 1_000
  }

  test('is soon while somebody waits, daily when nobody does, and never for an unsigned zone', () => {
    expect(seconds('unsigned', { wanted: false })).toBeNull()
    expect(seconds('leaving', { wanted: false, goneSince: ago(2 * day) })).toBeNull()
    expect(seconds('awaiting_ds')).toBe(10)
    expect(seconds('awaiting_ds', { checkingSince: ago(3_000) })).toBe(120)
    expect(seconds('awaiting_ds', { checkingSince: ago(40 * day) })).toBeGreaterThan(0.8 * day)
    expect(seconds('active', { parent: shows('a') })).toBeGreaterThan(0.8 * day)
    expect(seconds('active', { parent: null })).toBeLessThan(1.2 * 3_600)
  })

  test('is when a step is due', () => {
    expect(seconds('signing', { keys: [key('a', 0, false)] })).toBe(apexTtl + slack)
    expect(seconds('leaving', { wanted: false, dsTtl: 7_200 })).toBe(7_200 + slack)
  })
})

test('the table has exactly the changes of state that are ever decided, and leads out of every state', () => {
  const sightings = [null, nothing, foreign, shows('a'), shows('b')]
  const seen = new Set<string>()
  for (const state of dnssecStates.map((name) => name.toLowerCase() as DnssecState))
    for (const wanted of [true, false])
      for (const parent of sightings)
        for (const keys of [[key('a', 0, false)], [key('a', 9 * day)], [key('a', 9 * day, false), key('b', 9 * day)]])
          for (const goneSince of [null, ago(9 * day)]) {
            const given = { wanted, parent, goneSince, dsTtl: 60, keys: state === 'unsigned' ? [] : keys }
            const to = next(state, given).state
            if (to !== state) seen.add(`${state} ${to}`)
          }
  expect([...seen].sort()).toEqual(dnssecTransitions.map(({ from, to }) => `${from} ${to}`).sort())
})
