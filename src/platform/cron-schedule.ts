// Cron schedules in UTC: minute, hour, day of the month, month and day of the week.

type Field = { name: string; min: number; max: number; names?: readonly string[] }

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const fields: readonly Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of the month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: months },
  // Sunday is 0 or 7.
  { name: 'day of the week', min: 0, max: 7, names: weekdays },
]

export type CronSchedule = {
  minutes: readonly number[]
  hours: readonly number[]
  days: ReadonlySet<number>
  months: ReadonlySet<number>
  weekdays: ReadonlySet<number>
  /** Whether both kinds of day are restricted; then either may match. */
  eitherDay: boolean
}

/** The message is the rest of a sentence that starts with "The schedule". */
export class BadSchedule extends Error {}

function numberOf(text: string, { name, min, max, names }: Field, isEnd: boolean): number {
  const named = names?.indexOf(text.toLowerCase()) ?? -1
  // A range may end on Sunday: SAT-SUN.
  if (named >= 0) return isEnd && names === weekdays && named === 0 ? 7 : named + min
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  const words = names ? `, or a name such as ${names[1]!.toUpperCase()}` : ''
  throw new BadSchedule(`has ${JSON.stringify(text)} as ${name}, which must be ${min} to ${max}${words}`)
}

function valuesOf(text: string, field: Field): Set<number> {
  const values = new Set<number>()
  for (const item of text.split(',')) {
    const [range = '', step, ...more] = item.split('/')
    const bounds = range.split('-')
    const bad = (why: string) => new BadSchedule(`has ${JSON.stringify(item)} as ${field.name}: ${why}`)
    if (more.length > 0 || bounds.length > 2) throw bad('use *, a value, a range such as 1-5, or a step such as */15')
    if (step !== undefined && !/^[1-9]\d?$/.test(step)) throw bad('the step must be 1 to 99')
    const from = range === '*' ? field.min : numberOf(bounds[0]!, field, false)
    const alone = bounds.length === 1 && range !== '*' && step === undefined
    const to = alone ? from : bounds.length === 2 ? numberOf(bounds[1]!, field, true) : field.max
    if (from > to) throw bad('the range is backwards')
    for (let value = from; value <= to; value += Number(step ?? 1)) values.add(value)
  }
  return values
}

export function parseSchedule(text: string): CronSchedule {
  const parts = text.trim().split(/[ \t]+/)
  if (parts.length !== fields.length) {
    throw new BadSchedule('must have five fields: minute, hour, day of the month, month, day of the week')
  }
  const [minutes, hours, days, months, given] = parts.map((part, index) => valuesOf(part, fields[index]!))
  const weekdays = new Set([...given!].map((day) => day % 7))
  // As in every cron: if a field starts with a star, only the other one restricts the days.
  const eitherDay = !parts[2]!.startsWith('*') && !parts[4]!.startsWith('*')
  const sorted = (values: Set<number>) => [...values].sort((a, b) => a - b)
  const schedule = {
    minutes: sorted(minutes!),
    hours: sorted(hours!),
    days: days!,
    months: months!,
    weekdays,
    eitherDay,
  }
  if (!nextRun(schedule, new Date(0))) throw new BadSchedule('never runs: these months have no such day')
  return schedule
}

function isDay({ days, months, weekdays, eitherDay }: CronSchedule, day: Date): boolean {
  const [inMonth, inWeek] = [days.has(day.getUTCDate()), weekdays.has(day.getUTCDay())]
  return months.has(day.getUTCMonth() + 1) && (eitherDay ? inMonth || inWeek : inMonth && inWeek)
}

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
// A 29 February on a given weekday comes at most 40 years later, if a century without a leap day lies between.
const maxDays = 41 * 366

/** The first run after `after`; null if there is none. */
export function nextRun(schedule: CronSchedule, after: Date): Date | null {
  const from = (Math.floor(after.getTime() / minuteMs) + 1) * minuteMs
  const midnight = Math.floor(from / dayMs) * dayMs
  for (let days = 0; days < maxDays; days++) {
    const day = midnight + days * dayMs
    if (!isDay(schedule, new Date(day))) continue
    for (const hour of schedule.hours) {
      for (const minute of schedule.minutes) {
        const time = day + (hour * 60 + minute) * minuteMs
        if (time >= from) return new Date(time)
      }
    }
  }
  return null
}
