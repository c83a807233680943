import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BadSchedule, nextRun, parseSchedule } from '../../src/platform/cron-schedule.ts'

const next = (text: string, after: string) => nextRun(parseSchedule(text), new Date(after))?.toISOString()

describe('the next run', () => {
  test.each([
    ['* * * * *', '2026-11-23T10:00:00.000Z', '2026-11-23T10:01:00.000Z'],
    ['* * * * *', '2026-11-23T10:00:59.999Z', '2026-11-23T10:01:00.000Z'],
    ['*/15 * * * *', '2026-11-23T10:46:00.000Z', '2026-11-23T11:00:00.000Z'],
    ['5/20 * * * *', '2026-11-23T10:46:00.000Z', '2026-11-23T11:05:00.000Z'],
    ['0 3 * * *', '2026-12-31T03:00:00.000Z', '2027-01-01T03:00:00.000Z'],
    ['30 8-18/5 * * MON-FRI', '2026-11-20T18:30:00.000Z', '2026-11-23T08:30:00.000Z'],
    ['0 0 * * sat-sun', '2026-11-20T00:00:00.000Z', '2026-11-21T00:00:00.000Z'],
    ['0 0 * * 7', '2026-11-20T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
    ['0 0 1,15 JAN,jul *', '2026-11-20T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    ['0 0 29 2 *', '2096-03-01T00:00:00.000Z', '2104-02-29T00:00:00.000Z'],
    ['0 0 31 * *', '2026-11-01T00:00:00.000Z', '2026-12-31T00:00:00.000Z'],
    // Either day will do where both are given, but not where one of them begins with a star.
    ['0 0 13 * FRI', '2026-11-23T00:00:00.000Z', '2026-11-27T00:00:00.000Z'],
    ['0 0 31 2 MON', '2026-11-23T00:00:00.000Z', '2027-02-01T00:00:00.000Z'],
    ['0 0 */2 * MON', '2026-11-23T00:00:00.000Z', '2026-12-07T00:00:00.000Z'],
    ['  0\t0  1 1 * ', '2026-11-23T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
  ])('of %s after %s is %s', (text, after, wanted) => expect(next(text, after)).toBe(wanted))
})

test.each([
  ...['', '* * * *', '* * * * * *', '@daily', '60 * * * *', '* 24 * * *', '* * 0 * *', '* * 32 * *', '* * * 0 *'],
  ...['* * * 13 *', '* * * * 8', '* * * FOO *', 'JAN * * * *', '*/0 * * * *', '1-2-3 * * * *', '1/2/3 * * * *'],
  ...['5-1 * * * *', '* * * * FRI-MON', ', * * * *', '1, * * * *', '-1 * * * *', '1.5 * * * *', '1e1 * * * *'],
  ...['** * * * *', '*-5 * * * *', '0 0 31 2 *', '0 0 30 2 *', '0 0 31 4,6,9,11 *', '٣ * * * *', '* * * * ?'],
])('%j is refused', (text) => expect(() => parseSchedule(text)).toThrow(BadSchedule))

test('a refusal names the field and what was written', () => {
  expect(() => parseSchedule('0 25 * * *')).toThrow('has "25" as hour, which must be 0 to 23')
})

/** The obvious way: a value fits a field if one of the items names it. */
function fits(field: string, value: number, min: number, max: number): boolean {
  return field.split(',').some((item) => {
    const [range = '', step = '1'] = item.split('/')
    const [low, high] = range === '*' ? [min, max] : range.split('-').map(Number)
    const top = high ?? (item.includes('/') ? max : low!)
    return value >= low! && value <= top && (value - low!) % Number(step) === 0
  })
}

function isDue(text: string, time: Date): boolean {
  const [minute, hour, day, month, weekday] = text.split(' ') as [string, string, string, string, string]
  const inMonth = fits(day, time.getUTCDate(), 1, 31)
  const inWeek = [0, 7].some(
    (add) => fits(weekday, time.getUTCDay() + add, 0, 7) && (add === 0 || time.getUTCDay() === 0),
  )
  const either = !day.startsWith('*') && !weekday.startsWith('*')
  return (
    fits(minute, time.getUTCMinutes(), 0, 59) &&
    fits(hour, time.getUTCHours(), 0, 23) &&
    fits(month, time.getUTCMonth() + 1, 1, 12) &&
    (either ? inMonth || inWeek : inMonth && inWeek)
  )
}

function field(min: number, max: number) {
  const value = fc.integer({ min, max })
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
  const base = fc.oneof(fc.constant('*'), value.map(String), range)
  const item = fc.oneof(
    base,
    fc.tuple(base, fc.integer({ min: 1, max: 12 })).map(([text, step]) => `${text}/${step}`),
  )
  return fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(','))
}

test('of any schedule is the first minute that fits it, found minute by minute', () => {
  // Most days fit, so that the obvious way finds it soon.
  const schedules = fc
    .tuple(
      field(0, 59),
      field(0, 23),
      fc.oneof(fc.constant('*'), field(1, 31)),
      fc.oneof(fc.constant('*'), field(0, 7)),
    )
    .map(([minute, hour, day, weekday]) => `${minute} ${hour} ${day} * ${weekday}`)
  const times = fc.date({ min: new Date('2027-01-01'), max: new Date('2029-01-01'), noInvalidDate: true })
  fc.assert(
    fc.property(schedules, times, (text, after) => {
      let time = Math.floor(after.getTime() / 60_000) * 60_000
      for (let count = 0; count < 3 * 24 * 60; count++) {
        time += 60_000
        if (!isDue(text, new Date(time))) continue
        expect(next(text, after.toISOString())).toBe(new Date(time).toISOString())
        return
      }
      // Nothing in these days: then what is found is later, and fits.
      const found = nextRun(parseSchedule(text), after)!
      expect(found.getTime()).toBeGreaterThan(time)
      expect(isDue(text, found)).toBe(true)
    }),
    { numRuns: 150 },
  )
})
