// A large zone is looked up as it is sent: once for all who transfer it, in pieces, and no further than somebody reads.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createImages } from '../../../../src/engines/nameserver/transfer/images.ts'
import { zoneRecords } from '../../../../src/engines/nameserver/transfer/records.ts'
import type { Zone } from '../../../../src/engines/nameserver/zones/zone.ts'
import { readMessage } from '../messages.ts'
import { nowhere, type Offline, question, row, startOffline } from './offline.ts'

const names = 10_000
// Of one name each.
const piece = 20
const perMessage = 1_000

let offline: Offline
/** Names that were looked up. */
let looked = 0

beforeEach(() => {
  looked = 0
  offline = startOffline()
  const lines = Array.from({ length: names }, (_, index) => `TXT 300 n${index} "a text of some length"`)
  offline.put(['large.test'], [row('large.test', 1, lines)])
  const { zoneOf } = offline.table
  vi.spyOn(offline.table, 'zoneOf').mockImplementation((source) => counted(zoneOf.call(offline.table, source)))
})
afterEach(() => offline.transfers.close())

function counted(zone: Zone): Zone {
  const { nodes } = zone
  const own = {
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
  return { ...zone, nodes: own }
}

const axfr = () => offline.signed(question('large.test', 252))
const textsIn = (answers: Buffer[]) => {
  const texts = answers.flatMap((one) => readMessage(one).answer).filter(({ type }) => type === 16)
  return new Set(texts.map(({ name }) => name)).size
}

test('a connection that closes ends the work at once', async () => {
  let first = 0
  const answers = await offline.ask(axfr(), true, (closing) => {
    first ||= looked
    closing.abort()
  })
  expect(answers).toHaveLength(1)
  expect(first).toBeLessThanOrEqual(perMessage)
  for (let turn = 0; turn < 100; turn++) await nextTurn()
  expect(looked - first).toBeLessThanOrEqual(piece)
})

test('those who transfer a version together look it up once, and whoever comes later looks it up anew', async () => {
  const all = await Promise.all([1, 2, 3].map(() => offline.ask(axfr())))
  expect(all.map(textsIn)).toEqual([names, names, names])
  // The apex is a name too.
  expect(looked).toBe(names + 1)
  expect(textsIn(await offline.ask(axfr()))).toBe(names)
  expect(looked).toBe(2 * (names + 1))
})

test('one who joins in the middle, when the first one has gone, has the whole zone', async () => {
  let count = 0
  let joined: Promise<Buffer[]> | null = null
  await offline.ask(axfr(), true, (closing) => {
    if (++count === 3) joined = offline.ask(axfr())
    if (count === 6) closing.abort()
  })
  expect(textsIn(await joined!)).toBe(names)
  expect(looked).toBe(names + 1)
})

test('others get their turn after a few records, however many transfer', async () => {
  let isDone = false
  let longest = 0
  let turns = 0
  const watch = async () => {
    for (let before = 0; !isDone; before = looked, turns++) {
      await nextTurn()
      longest = Math.max(longest, looked - before)
    }
  }
  const transfers = [1, 2, 3, 4].map(() => offline.ask(axfr()))
  const watching = watch()
  await Promise.all(transfers)
  isDone = true
  await watching
  expect(longest).toBeLessThanOrEqual(piece)
  expect(turns).toBeGreaterThanOrEqual(names / piece)
})

test('messages are sent as the records are looked up', async () => {
  const progress: number[] = []
  await offline.ask(axfr(), true, () => progress.push(looked))
  const steps = progress.map((one, index) => one - (progress[index - 1] ?? 0))
  expect(Math.max(...steps)).toBeLessThanOrEqual(perMessage)
})

test('the memory of a version is given back when the last who transfers it ends, and not before', async () => {
  const images = createImages()
  const { origin } = offline.table.get('large.test')!
  const version = { version: 'one', origin, from: null, records: () => zoneRecords(zone, nowhere) }
  const zone = offline.table.zoneOf(offline.table.get('large.test')!)
  const [one, other] = [images.read(version, undefined), images.read(version, undefined)]
  const octets = (await one.next()).value!.template.octets
  await other.next()
  await one.return(undefined)
  expect([images.size, octets.length > 0]).toEqual([1, true])
  await other.return(undefined)
  expect([images.size, octets.length]).toEqual([0, 0])
})
