// The webhooks that this process holds, and how much may be sent to each of them now.
import type { Claimed, TakenLane } from '../../services/delivery-lanes.ts'

export type Lane = TakenLane & {
  busy: number
  /** There may be something to claim. */
  wanted: boolean
  /** The last claim took all that was free, so there is probably more. */
  more: boolean
  /** An attempt failed, and nothing more is sent until it is counted. */
  failed: boolean
  usedMs: number
}

export type Lanes = Map<string, Lane>

export type Share = { webhookId: string; free: number; busy: number }

const perLane = 8
// What one process has open at a time. When half of it is in use, each webhook gets one place, so that receivers that
// hang fill the places later than they are found out.
const inFlightLimit = 1_024

export function adopt(lanes: Lanes, taken: TakenLane[]): void {
  for (const lane of taken) {
    lanes.set(lane.webhookId, { ...lane, busy: 0, wanted: true, more: false, failed: false, usedMs: Date.now() })
  }
}

/** What may be claimed for each; `crowded` if some had to wait because too much is under way already. */
export function shareOut(lanes: Lanes, inFlight: number): { shares: Share[]; crowded: boolean } {
  const limit = inFlight > inFlightLimit / 2 ? 1 : perLane
  let places = inFlightLimit - inFlight
  let crowded = false
  const shares: Share[] = []
  for (const { webhookId, wanted, failed, busy } of lanes.values()) {
    if (!wanted || failed || busy >= perLane) continue
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

export function noteClaim(lanes: Lanes, shares: Share[], claimed: Claimed[]): void {
  const counts = new Map<string, number>()
  for (const { webhookId } of claimed) counts.set(webhookId, (counts.get(webhookId) ?? 0) + 1)
  for (const { webhookId, free } of shares) {
    const lane = lanes.get(webhookId)!
    const count = counts.get(webhookId) ?? 0
    lane.wanted = false
    lane.more = count === free
    if (count === 0) continue
    // To the end of the line, so that all have their turn when places are few.
    lanes.delete(webhookId)
    lanes.set(webhookId, lane)
  }
}
