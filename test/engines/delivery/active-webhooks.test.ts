import { describe, expect, test } from 'vitest'
import {
  type ActiveWebhooks,
  addWebhooks,
  adjustWindow,
  allocate,
  maxWindow,
} from '../../../src/engines/delivery/active-webhooks.ts'

function hold(count: number, accountOf = (n: number) => `acc_${n}`): ActiveWebhooks {
  const held: ActiveWebhooks = new Map()
  addWebhooks(
    held,
    Array.from({ length: count }, (_, n) => ({ webhookId: `whk_${n}`, accountId: accountOf(n) })),
  )
  return held
}
const free = (held: ActiveWebhooks, inFlight = 0) => allocate(held, inFlight).shares.map((share) => share.free)

describe('the window of a receiver', () => {
  test('is small at first, widens with quick answers up to a bound, and is small again after a failure', () => {
    const held = hold(1)
    const webhook = held.get('whk_0')!
    expect(free(held)).toEqual([8])
    for (let n = 0; n < 8; n++) adjustWindow(webhook, true, 20)
    expect(free(held)).toEqual([16])
    for (let n = 0; n < 500; n++) adjustWindow(webhook, true, 20)
    expect(free(held)).toEqual([maxWindow])
    adjustWindow(webhook, false, 20)
    // Nothing more until the failure is on record.
    expect(free(held)).toEqual([])
    webhook.failed = false
    expect(free(held)).toEqual([8])
  })

  test('is halved by a slow answer, and never gets smaller than at first', () => {
    const held = hold(1)
    const webhook = held.get('whk_0')!
    for (let n = 0; n < 100; n++) adjustWindow(webhook, true, 20)
    adjustWindow(webhook, true, 5_000)
    expect(free(held)).toEqual([maxWindow / 2])
    for (let n = 0; n < 10; n++) adjustWindow(webhook, true, 5_000)
    expect(free(held)).toEqual([8])
  })
})

test('fifty wide windows of one account leave more than half of the places to others, at their full width', () => {
  const held = hold(51, (n) => (n < 50 ? 'acc_hostile' : 'acc_honest'))
  for (const webhook of held.values()) webhook.window = maxWindow
  const { shares, crowded } = allocate(held, 0)
  const hostile = shares.filter(({ webhookId }) => webhookId !== 'whk_50')
  const taken = hostile.reduce((sum, share) => sum + share.free, 0)
  expect(taken).toBeLessThan(512)
  expect(crowded).toBe(true)
  expect(shares.find(({ webhookId }) => webhookId === 'whk_50')!.free).toBe(maxWindow)
  // As many of them hang: the honest one still has its whole window.
  for (const { webhookId, free } of hostile) held.get(webhookId)!.busy = free
  expect(allocate(held, taken).shares).toEqual([{ webhookId: 'whk_50', free: maxWindow, busy: 0 }])
})
