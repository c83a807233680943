// Numbers: formatting, byte sizes, and bars for the usage of a limit.
import type { ComponentChildren } from 'preact'

const formatter = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB']

export const num = (value: number) => formatter.format(value)

/** `412 KB`, `3.1 GB`, in decimal units. */
export function bytes(value: number): string {
  let size = value
  let unit = 0
  for (; size >= 999.5 && unit < units.length - 1; unit++) size /= 1000
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`
}

export function Num({ value }: { value: number }) {
  return <span class="figure">{num(value)}</span>
}

export function Bytes({ value }: { value: number }) {
  return (
    <span class="figure" title={`${num(value)} bytes`}>
      {bytes(value)}
    </span>
  )
}

export const shortCommit = (commit: string) => commit.slice(0, 7)

type BarProps = { value: number; max: number; label: string; format?: (value: number) => string; tone?: 'go' | 'full' }

/** How much of a limit is used; highlighted from 90%. */
export function Bar({ value, max, label, format = num, tone }: BarProps) {
  const part = max > 0 ? Math.min(1, value / max) : 0
  const kind = tone ?? (part >= 0.9 ? 'full' : '')
  // Not <meter>, which each browser draws differently.
  const meter = {
    role: 'meter',
    'aria-label': label,
    'aria-valuemin': 0,
    'aria-valuemax': max,
    'aria-valuenow': Math.min(value, max),
    'aria-valuetext': `${format(value)} of ${format(max)}`,
  } as const
  return (
    <div class="bar" {...meter}>
      <i class={kind} style={{ width: `${part * 100}%` }} />
    </div>
  )
}

/** `212 of 1,000` with its bar. */
export function Used({ value, max, label, format = num }: Omit<BarProps, 'tone'>) {
  return (
    <>
      <span class="figure">
        {format(value)} <span class="soft">of {format(max)}</span>
      </span>
      <Bar value={value} max={max} label={label} format={format} />
    </>
  )
}

/** Names and values. */
export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl>
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
