// The range of time that a caller asks for: aligned to steps, within what is kept, in a number of buckets that is bounded.
import { Fault, type FieldCode, type FieldError } from '../../platform/errors.ts'
import type { trafficSteps } from '../../schemas/traffic.ts'
import type { RollupStep } from './columns.ts'
import { hourMonths, keptSince, minuteDays } from './retention.ts'

export type TrafficStep = (typeof trafficSteps)[number]

export type RangeQuery = { from?: string; to?: string; step?: TrafficStep }

/** `rollups`: which of them it is read from. */
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

export function refuseTime(name: 'from' | 'to', detail: string, code: FieldCode = 'out_of_range'): never {
  const errors: FieldError[] = [{ in: 'query', pointer: `#/${name}`, code, detail }]
  throw new Fault('validation_failed', `${name}: ${detail}`, { errors })
}

const earliestMs = Date.UTC(2000, 0)
const yearMs = 366 * 86_400_000

export function timeOf(name: 'from' | 'to', given: string): number {
  const ms = Date.parse(given)
  if (Number.isNaN(ms)) refuseTime(name, 'is not a time there is', 'bad_format')
  if (ms < earliestMs || ms > Date.now() + yearMs) refuseTime(name, 'is before 2000, or more than a year ahead')
  return ms
}

/** `from` is taken back to the start of its step, `to` on to the end of its step, and steps are those of UTC. */
export function rangeOf(
  { from, to, step = 'hour' }: RangeQuery,
  mostBuckets: number,
  nowMs = Date.now(),
): TrafficRange {
  const stepMs = seconds[step] * 1000
  const toMs = Math.ceil((to === undefined ? nowMs + 1 : timeOf('to', to)) / stepMs) * stepMs
  const fromMs =
    from === undefined ? toMs - defaultBuckets[step] * stepMs : Math.floor(timeOf('from', from) / stepMs) * stepMs
  const isReversed = from !== undefined && to !== undefined && Date.parse(from) >= Date.parse(to)
  if (isReversed || fromMs >= toMs) refuseTime('from', 'must be before `to`')
  const count = (toMs - fromMs) / stepMs
  if (count > mostBuckets) {
    refuseTime('from', `is ${count} steps before \`to\`, more than ${mostBuckets}: ask for less, or a longer step`)
  }
  const rollups = step === 'minute' ? 'minute' : 'hour'
  if (fromMs < keptSince(rollups, nowMs).getTime()) {
    const kept =
      step === 'minute' ? `minutes are kept for ${minuteDays} days` : `hours are kept for ${hourMonths} months`
    refuseTime('from', `is too long ago: ${kept}`)
  }
  return { step, rollups, from: new Date(fromMs), to: new Date(toMs), seconds: seconds[step], count }
}
