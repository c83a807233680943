// The webhooks leased by this process, and how many requests each may get at once.
import type { Claimed, LeasedWebhook, Share } from '../../services/webhooks/index.ts'

export type ActiveWebhook = LeasedWebhook & {
  /** Attempts in flight, and their limit. */
  busy: number
  window: number
  /** Whether there may be something to claim. */
  hasWork: boolean
  /** Whether the last claim was full, so there is probably more. */
  hasMore: boolean
  /** Set after a failed attempt, to send nothing until the failure is recorded. */
  failed: boolean
  usedMs: number
}

/** By id, in the order of turns. */
export type ActiveWebhooks = Map<string, ActiveWebhook>

// A receiver starts with a window of a few requests. Each quick response widens it, so that a receiver that keeps up
// gets more than a thousand events a second. A slow response or a failure narrows it again.
const firstWindow = 8
export const maxWindow = 64
const quickMs = 250
const slowMs = 1_000
// Open requests per process. When half of them are in use, each webhook only gets one, so that hanging receivers time
// out before they use up the rest. No single account can reach that point.
const maxInFlight = 1_024
const maxInFlightPerAccount = maxInFlight / 4

export function addWebhooks(webhooks: ActiveWebhooks, leased: LeasedWebhook[]): void {
  for (const webhook of leased) {
    webhooks.set(webhook.webhookId, {
      ...webhook,
      busy: 0,
      window: firstWindow,
      hasWork: true,
      hasMore: false,
      failed: false,
      usedMs: performance.now(),
    })
  }
}

/** How much to claim for each webhook. `crowded`: some have to wait because too many requests are in flight. */
export function allocate(webhooks: ActiveWebhooks, inFlight: number): { shares: Share[]; crowded: boolean } {
  const isCrowded = inFlight > maxInFlight / 2
  const used = new Map<string, number>()
  for (const { accountId, busy } of webhooks.values()) used.set(accountId, (used.get(accountId) ?? 0) + busy)
  let places = maxInFlight - inFlight
  let crowded = false
  const shares: Share[] = []
  for (const { webhookId, accountId, hasWork, failed, busy, window } of webhooks.values()) {
    if (!hasWork || failed || busy >= window) continue
    const ofAccount = used.get(accountId)!
    const free = Math.min((isCrowded ? 1 : window) - busy, places, maxInFlightPerAccount - ofAccount)
    if (free <= 0) {
      crowded = true
      continue
    }
    shares.push({ webhookId, free, busy })
    places -= free
    used.set(accountId, ofAccount + free)
  }
  return { shares, crowded }
}

/** Adjusts the window to the outcome of an attempt. */
export function adjustWindow(webhook: ActiveWebhook, isSuccess: boolean, durationMs: number): void {
  if (!isSuccess) Object.assign(webhook, { failed: true, window: firstWindow })
  else if (durationMs < quickMs) webhook.window = Math.min(webhook.window + 1, maxWindow)
  else if (durationMs > slowMs) webhook.window = Math.max(Math.floor(webhook.window / 2), firstWindow)
}

/** Returns whether a webhook's claim was full, so there is probably more for it. */
export function recordClaim(webhooks: ActiveWebhooks, shares: Share[], claimed: Claimed[]): boolean {
  const counts = new Map<string, number>()
  for (const { webhookId } of claimed) counts.set(webhookId, (counts.get(webhookId) ?? 0) + 1)
  for (const { webhookId, free } of shares) {
    const webhook = webhooks.get(webhookId)!
    const count = counts.get(webhookId) ?? 0
    webhook.hasWork = false
    webhook.hasMore = count === free
    if (count === 0) continue
    // Moved to the end of the map, so that all webhooks get their turn.
    webhooks.delete(webhookId)
    webhooks.set(webhookId, webhook)
  }
  return shares.some(({ webhookId }) => webhooks.get(webhookId)!.hasMore)
}
