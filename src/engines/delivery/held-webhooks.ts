// The webhooks that this process has a lease on, and how much may be sent to each of them now.
import type { Claimed, LeasedWebhook, Share } from '../../services/webhooks/sending.ts'

export type HeldWebhook = LeasedWebhook & {
  /** Attempts in flight. */
  busy: number
  /** There may be something to claim. */
  wanted: boolean
  /** The last claim used all free places, so there is probably more. */
  more: boolean
  /** An attempt failed; nothing more is sent until the failure is recorded. */
  failed: boolean
  usedMs: number
}

/** By id, in the order of their turns. */
export type HeldWebhooks = Map<string, HeldWebhook>

const perWebhook = 8
// Open requests per process. When half of them are in use, each webhook gets one: hanging receivers then time out
// before they use up the rest.
const inFlightLimit = 1_024

export function adopt(held: HeldWebhooks, taken: LeasedWebhook[]): void {
  for (const webhook of taken) {
    held.set(webhook.webhookId, { ...webhook, busy: 0, wanted: true, more: false, failed: false, usedMs: Date.now() })
  }
}

/** How much may be claimed for each; `crowded` if some had to wait because too many requests are in flight. */
export function shareOut(held: HeldWebhooks, inFlight: number): { shares: Share[]; crowded: boolean } {
  const limit = inFlight > inFlightLimit / 2 ? 1 : perWebhook
  let places = inFlightLimit - inFlight
  let crowded = false
  const shares: Share[] = []
  for (const { webhookId, wanted, failed, busy } of held.values()) {
    if (!wanted || failed || busy >= perWebhook) continue
    const free = Math.min(limit - busy, places)
    if (free <= 0) {
      crowded = true
      continue
    }
    shares.push({ webhookId, free, busy })
    places -= free
  }
  return { shares, crowded }
}

export function noteClaim(held: HeldWebhooks, shares: Share[], claimed: Claimed[]): void {
  const counts = new Map<string, number>()
  for (const { webhookId } of claimed) counts.set(webhookId, (counts.get(webhookId) ?? 0) + 1)
  for (const { webhookId, free } of shares) {
    const webhook = held.get(webhookId)!
    const count = counts.get(webhookId) ?? 0
    webhook.wanted = false
    webhook.more = count === free
    if (count === 0) continue
    // Moved to the end of the map, so that all get their turn when few places are free.
    held.delete(webhookId)
    held.set(webhookId, webhook)
  }
}
