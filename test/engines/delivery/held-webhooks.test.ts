import { describe, expect, test } from 'vitest'
import {
  adopt,
  type HeldWebhooks,
  noteOutcome,
  shareOut,
  widestWindow,
} from '../../../src/engines/delivery/held-webhooks.ts'

function hold(count: number, accountOf = (n: number) => `acc_${n}`): HeldWebhooks {
  const held: HeldWebhooks = new Map()
  adopt(
    held,
    Array.from({ length: count }, (_, n) => ({ webhookId: `whk_${n}`, accountId: accountOf(n) })),
  )
  return held
}
const free = (held: HeldWebhooks, inFlight = 0) => shareOut(held, inFlight).shares.map((share) => share.free)

describe('the window of a receiver', () => {
  test('is small at first, widens with quick answers up to a bound, and is small again after a failure', () => {
    const held = hold(1)
    const webhook = held.get('whk_0')!
    expect(free(held)).toEqual([8])
    for (let n = 0; n < 8; n++) noteOutcome(webhook, true, 20)
    expect(free(held)).toEqual([16])
    for (let n = 0; n < 500; n++) noteOutcome(webhook, true, 20)
    expect(free(held)).toEqual([widestWindow])
    noteOutcome(webhook, false, 20)
    // Nothing more until the failure is on record.
    expect(free(held)).toEqual([])
    webhook.failed = false
    expect(free(held)).toEqual([8])
  })

  test('is halved by a slow answer, and never gets smaller than at first', () => {
    const held = hold(1)
    const webhook = held.get('whk_0')!
    for (let n = 0; n < 100; n++) noteOutcome(webhook, true, 20)
    noteOutcome(webhook, true, 5_000)
    expect(free(held)).toEqual([widestWindow / 2])
    for (let n = 0; n < 10; n++) noteOutcome(webhook, true, 5_000)
    expect(free(held)).toEqual([8])
  })
})

test('fifty wide windows of one account leave more than half of the places to others, at their full width', () => {
  const held = hold(51, (n) => (n < 50 ? 'acc_hostile' : 'acc_honest'))
  for (const webhook of held.values()) webhook.window = widestWindow
  const { shares, crowded } = shareOut(held, 0)
  const hostile = shares.filter(({ webhookId }) => webhookId !== 'whk_50')
  const taken = hostile.reduce((sum, share) => sum + share.free, 0)
  expect(taken).toBeLessThan(512)
  expect(crowded).toBe(true)
  expect(shares.find(({ webhookId }) => webhookId === 'whk_50')!.free).toBe(widestWindow)
  // As many of them hang: the honest one still has its whole window.
  for (const { webhookId, free } of hostile) held.get(webhookId)!.busy = free
  expect(shareOut(held, taken).shares).toEqual([{ webhookId: 'whk_50', free: widestWindow, busy: 0 }])
})
