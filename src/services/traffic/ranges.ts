// Parses the requested time range: aligned to steps, within the retention, and limited in its number of buckets.
import { readTime, refuseTime } from '../../platform/database/query-times.ts'
import type { trafficSteps } from '../../schemas/traffic.ts'
import type { RollupStep } from '../../schemas/traffic-columns.ts'
import { hourMonths, minuteDays, retentionStart } from './retention.ts'

export type TrafficStep = (typeof trafficSteps)[number]

export type RangeQuery = { from?: string; to?: string; step?: TrafficStep }

/** `rollups`: the rollups to read it from. */
export type TrafficRange = {
  step: TrafficStep
  rollups: RollupStep
  from: Date
  to: Date
  seconds: number
  count: number
}

const seconds: Record<TrafficStep, number> = { minute: 60, hour: 3_600, day: 86_400 }
/** An hour by minutes, a day by hours, a month by days. */
const defaultBuckets: Record<TrafficStep, number> = { minute: 60, hour: 24, day: 30 }

/** Rounds `from` down to the start of its step and `to` up to the end of its step, in UTC. */
export function rangeOf({ from, to, step = 'hour' }: RangeQuery, maxBuckets: number, nowMs = Date.now()): TrafficRange {
  const stepMs = seconds[step] * 1000
  const toMs = Math.ceil((to === undefined ? nowMs + 1 : readTime('to', to)) / stepMs) * stepMs
  const fromMs =
    from === undefined ? toMs - defaultBuckets[step] * stepMs : Math.floor(readTime('from', from) / stepMs) * stepMs
  const isReversed = from !== undefined && to !== undefined && Date.parse(from) >= Date.parse(to)
  if (isReversed || fromMs >= toMs) refuseTime('from', 'must be before `to`')
  const count = (toMs - fromMs) / stepMs
  if (count > maxBuckets) {
    refuseTime(
      'from',
      `is ${count} steps before \`to\`, more than ${maxBuckets}; request a shorter range or a longer step`,
    )
  }
  const rollups = step === 'minute' ? 'minute' : 'hour'
  if (fromMs < retentionStart(rollups, nowMs).getTime()) {
    const kept =
      step === 'minute' ? `minutes are kept for ${minuteDays} days` : `hours are kept for ${hourMonths} months`
    refuseTime('from', `is too long ago: ${kept}`)
  }
  return { step, rollups, from: new Date(fromMs), to: new Date(toMs), seconds: seconds[step], count }
}
