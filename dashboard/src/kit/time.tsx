// Times in the local zone, with UTC in the title, updated by one timer.
import { signal, useComputed } from '@preact/signals'
import { serverNow } from './session.ts'

/** The server's time, updated every second while the page is visible. */
export const now = signal(serverNow())
const tick = () => {
  if (!document.hidden) now.value = serverNow()
}
export function startClock(): void {
  setInterval(tick, 1_000)
  document.addEventListener('visibilitychange', tick)
}

const units: [number, string][] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/** `11 s`, `2 min`, `3 h`, `5 d` */
export function roughly(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const [size, unit] = units.find(([length]) => whole >= length) ?? [1, 's']
  return `${Math.floor(whole / size)} ${unit}`
}

/** `0.4 s`, `18 s`, `2 min 5 s`, `1 h 4 min` */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.floor(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const both = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' })

export const clockOf = (at: string | number) => clock.format(new Date(at))
export const utc = (at: string | number) =>
  new Date(at)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC')

function relative(at: number, nowMs: number): string {
  const seconds = (nowMs - at) / 1000
  if (Math.abs(seconds) >= 30 * 86_400) return day.format(at)
  if (seconds < -1) return `in ${roughly(-seconds)}`
  return seconds < 1 ? 'just now' : `${roughly(seconds)} ago`
}

type TimeProps = {
  at: string | number
  /** `ago` is relative and updates itself; `clock` has seconds; `full` has date and time. */
  form?: 'ago' | 'clock' | 'date' | 'full'
}

export function Time({ at, form = 'ago' }: TimeProps) {
  const ms = new Date(at).getTime()
  const text = useComputed(() => {
    if (form === 'ago') return relative(ms, now.value)
    return (form === 'clock' ? clock : form === 'date' ? day : both).format(ms)
  })
  return (
    <time key={`${ms} ${form}`} dateTime={new Date(ms).toISOString()} title={utc(ms)}>
      {form === 'ago' ? text : text.peek()}
    </time>
  )
}

/** A running duration since `from`, or the fixed one until `to`. */
export function Elapsed({ from, to }: { from: string | number; to?: string | number | null }) {
  const start = new Date(from).getTime()
  const end = to === null || to === undefined ? null : new Date(to).getTime()
  return <span class="figure">{duration((end ?? now.value) - start)}</span>
}

export function Countdown({ to }: { to: string | number }) {
  const left = (new Date(to).getTime() - now.value) / 1000
  return <span class="figure">{left <= 0 ? 'now' : roughly(left)}</span>
}
