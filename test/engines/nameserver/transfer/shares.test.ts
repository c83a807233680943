// Nobody's transfers keep others from theirs: a key and an account have so many at once, and some wait.
import { expect, test } from 'vitest'
import { createShares, type Leave } from '../../../../src/engines/nameserver/transfer/shares.ts'
import { startClock } from './offline.ts'

const limits = { ofKey: 2, ofAccount: 3, waiting: 4 }
const key = (name: string, accountId = 'acc_1') => ({ name, accountId })

/** What has become of requests: the order in which they started, and those that were refused. */
function startShares() {
  const clock = startClock()
  const platform = { ...limits, waiting: Number.POSITIVE_INFINITY }
  const shares = createShares(clock.later, { customers: limits, platform })
  const started: string[] = []
  const refused: string[] = []
  const leaves = new Map<string, Leave>()
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    started,
    refused,
    settled,
    clock,
    async leave(label: string, end: Parameters<Leave>[0] = 'complete') {
      leaves.get(label)!(end)
      await settled()
    },
    async enter(label: string, of: { name: string; accountId?: string }, signal?: AbortSignal) {
      void shares.enter(of, signal).then((leave) => {
        if (leave) leaves.set(label, leave)
        ;(leave ? started : refused).push(label)
      })
      await settled()
    },
  }
}

test('a key has some at once, some that wait in their order, and no more', async () => {
  const shares = startShares()
  for (let index = 1; index <= 7; index++) await shares.enter(`a${index}`, key('a'))
  expect(shares.started).toEqual(['a1', 'a2'])
  expect(shares.refused).toEqual(['a7'])
  await shares.leave('a2')
  await shares.leave('a1')
  expect(shares.started).toEqual(['a1', 'a2', 'a3', 'a4'])
})

test('other keys of the account start before what waits for its own, and other accounts at once', async () => {
  const shares = startShares()
  for (const label of ['a1', 'a2', 'a3']) await shares.enter(label, key('a'))
  await shares.enter('b1', key('b'))
  await shares.enter('b2', key('b'))
  await shares.enter('other', key('a', 'acc_2'))
  expect(shares.started).toEqual(['a1', 'a2', 'b1', 'other'])
  await shares.leave('b1')
  expect(shares.started.at(-1)).toBe('b2')
  await shares.leave('a1')
  expect(shares.started.at(-1)).toBe('a3')
})

test('one who goes while it waits gives its place to the next', async () => {
  const shares = startShares()
  const closing = new AbortController()
  for (const label of ['a1', 'a2']) await shares.enter(label, key('a'))
  await shares.enter('gone', key('a'), closing.signal)
  for (const label of ['a3', 'a4', 'a5']) await shares.enter(label, key('a'))
  await shares.enter('full', key('a'))
  closing.abort()
  await shares.enter('a6', key('a'))
  expect(shares.refused).toEqual(['full', 'gone'])
  await shares.leave('a1')
  expect(shares.started).toEqual(['a1', 'a2', 'a3'])
})

test("the platform's secondaries wait, however many transfers they ask for", async () => {
  const shares = startShares()
  for (let index = 1; index <= 50; index++) await shares.enter(`p${index}`, { name: 'platform' })
  expect(shares.refused).toEqual([])
  for (let index = 1; index <= 50; index++) await shares.leave(`p${index}`)
  expect(shares.started).toHaveLength(50)
})

test('a key that aborts every transfer starts fewer and fewer of them, and other keys as many as ever', async () => {
  const shares = startShares()
  const seconds = 120
  let aborted = 0
  let others = 0
  for (let second = 0; second < seconds; second++) {
    for (let client = 0; client < 3; client++) await shares.enter(`a${second}.${client}`, key('a'))
    for (const label of shares.started.splice(0)) {
      await shares.leave(label, label.startsWith('a') ? 'aborted' : 'complete')
      if (label.startsWith('a')) aborted++
      else others++
    }
    await shares.enter(`b${second}`, key('b'))
    await shares.clock.pass(1_000)
  }
  expect(aborted).toBeGreaterThan(5)
  expect(aborted).toBeLessThanOrEqual(15)
  expect(others).toBe(seconds - 1)
})

test('a transfer that completes ends the wait of its key', async () => {
  const shares = startShares()
  for (const label of ['a1', 'a2']) await shares.enter(label, key('a'))
  await shares.leave('a1', 'aborted')
  await shares.enter('a3', key('a'))
  expect(shares.started).toEqual(['a1', 'a2'])
  await shares.clock.pass(1_000)
  expect(shares.started).toEqual(['a1', 'a2', 'a3'])
  await shares.leave('a2', 'complete')
  await shares.leave('a3', 'aborted')
  await shares.clock.pass(1_000)
  for (const label of ['a4', 'a5']) await shares.enter(label, key('a'))
  expect(shares.started).toEqual(['a1', 'a2', 'a3', 'a4', 'a5'])
})
