// A customer's clients that start transfers only to abort them, without a pause: they get few, and others get theirs.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import type { ZoneKey } from '../../../../src/engines/nameserver/answer/keys.ts'
import { readMessage } from '../messages.ts'
import { type Offline, question, row, startClock, startOffline } from './offline.ts'

const zone = 'mine.test'
const keyNamed = (name: string) =>
  ({
    id: `key_${name}`,
    name,
    secret: Buffer.alloc(32, name),
    accountId: 'acc_1',
    domainId: `dom_${zone}`,
    purpose: 'transfer',
    notify: [],
  }) as unknown as ZoneKey
const [breaking, honest] = [keyNamed('breaking.key'), keyNamed('honest.key')]

let offline: Offline
let clock: ReturnType<typeof startClock>
beforeEach(() => {
  clock = startClock()
  const keys = [breaking, honest]
  const find = (name: string) => keys.find((one) => wireName(one.name) === name) ?? null
  offline = startOffline([], { keys: { find, transfersOf: () => keys }, later: clock.later })
  offline.put([zone], [row(zone, 1, ['A 300 a 192.0.2.1'])])
})
afterEach(() => offline.transfers.close())

const axfr = (key: ZoneKey) => offline.signed(question(zone, 252), key)

/** Clients without a pause between two attempts, until `stop`. */
function startClients(count: number) {
  const tally = { started: 0, refused: 0 }
  let isOver = false
  const run = async () => {
    while (!isOver) {
      await offline
        .ask(axfr(breaking), true, (closing) => closing.abort())
        .then(([first]) => {
          if (first && (first[3]! & 0x0f) === 0) tally.started++
          else if (first) tally.refused++
        })
      await nextTurn()
    }
  }
  const all = Array.from({ length: count }, run)
  return {
    tally,
    async stop() {
      isOver = true
      let ended = false
      const end = Promise.all(all).then(() => {
        ended = true
      })
      while (!ended) await clock.pass(60_000)
      await end
    },
  }
}

test.each([3, 30])('%i of them get few transfers and answers, and another key transfers meanwhile', async (count) => {
  const clients = startClients(count)
  let complete = 0
  const seconds = 60
  for (let second = 0; second < seconds; second++) {
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    if (second % 10 === 0) {
      const answers = await offline.ask(axfr(honest))
      if (answers.flatMap((one) => readMessage(one).answer).some(({ type }) => type === 1)) complete++
    }
    await clock.pass(1_000)
  }
  const { started, refused } = { ...clients.tally }
  await clients.stop()
  expect(complete).toBe(seconds / 10)
  expect(started).toBeLessThanOrEqual(14)
  expect(refused).toBeLessThanOrEqual(Math.max(0, count - 16) * seconds)
})

test('those that leave while they wait do not count, and the key transfers soon after', async () => {
  const left = new AbortController()
  const abort = (closing: AbortController) => closing.abort()
  for (let n = 0; n < 2; n++) await offline.ask(axfr(breaking), true, abort)
  const waiting = Array.from({ length: 16 }, () => offline.ask(axfr(breaking), true, abort, left.signal))
  left.abort()
  const refused = Promise.all(waiting)
  const next = offline.ask(axfr(breaking))
  for (let second = 0; second < 3; second++) {
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    await clock.pass(1_000)
  }
  expect((await next).flatMap((one) => readMessage(one).answer).some(({ type }) => type === 1)).toBe(true)
  await refused
})
