// SVG plots, labelled for screen readers, with their values as a table.
import { num } from './numbers.tsx'
import { clockOf, utc } from './time.tsx'

type SparkProps = { values: number[]; label: string }

/** A plot the height of a line of text. */
export function Spark({ values, label }: SparkProps) {
  if (values.length < 2) return null
  const width = 96
  const height = 24
  const line = pathOf(values, Math.max(1, ...values), width, height)
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <path class="area" d={`${line}L${width} ${height}L0 ${height}Z`} />
      <path d={line} />
    </svg>
  )
}

function pathOf(values: number[], max: number, width: number, height: number): string {
  const step = width / Math.max(1, values.length - 1)
  return values
    .map(
      (value, index) =>
        `${index ? 'L' : 'M'}${(index * step).toFixed(1)} ${(height - 1 - (value / max) * (height - 3)).toFixed(1)}`,
    )
    .join('')
}

export type Series = { name: string; values: number[]; tone?: 'accent' | 'ready' | 'busy' | 'bad' | 'soft' }

type PlotProps = {
  /** Such as "Requests per hour". */
  label: string
  /** One time for each value. */
  times: string[]
  /** The first series is filled. */
  series: Series[]
  format?: (value: number) => string
  /** Labels the axis with days instead of times. */
  days?: boolean
}

const w = 720
const h = 160

export function Plot({ label, times, series, format = num, days = false }: PlotProps) {
  const top = ceiling(Math.max(1, ...series.flatMap(({ values }) => values)))
  const total = series.map(({ name, values }) => `${name} ${format(values.reduce((sum, value) => sum + value, 0))}`)
  const name = (at: string) =>
    days ? new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' }) : clockOf(at).slice(0, 5)
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * (times.length - 1)))
  return (
    <figure class="plot">
      <svg viewBox={`0 0 ${w} ${h}`} preserveAspectRatio="none" role="img" aria-label={`${label}: ${total.join(', ')}`}>
        {[0.5, 1].map((part) => (
          <line key={part} class="grid" x1="0" x2={w} y1={h - part * (h - 2)} y2={h - part * (h - 2)} />
        ))}
        {series.map(({ name: key, values, tone = 'accent' }, index) => {
          const line = pathOf(values, top, w, h)
          return (
            <g key={key} class={tone}>
              {index === 0 && <path class="area" d={`${line}L${w} ${h}L0 ${h}Z`} />}
              <path d={line} />
            </g>
          )
        })}
      </svg>
      <span class="scale soft" aria-hidden="true">
        {format(top)}
      </span>
      <div class="ticks soft" aria-hidden="true">
        {times.length > 1 && [...new Set(ticks)].map((index) => <span key={index}>{name(times[index]!)}</span>)}
      </div>
      <figcaption>
        {series.length > 1 &&
          series.map(({ name: key, tone = 'accent' }) => (
            <span key={key} class={`key ${tone}`}>
              {key}
            </span>
          ))}
        <details>
          <summary>As a table</summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard. */}
          <section class="scroll" tabIndex={0} aria-label={`${label}, as a table`}>
            <table>
              <thead>
                <tr>
                  <th scope="col">Time (UTC)</th>
                  {series.map(({ name: key }) => (
                    <th key={key} scope="col" class="num">
                      {key}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {times.map((at, index) => (
                  <tr key={at}>
                    <td>{utc(at)}</td>
                    {series.map(({ name: key, values }) => (
                      <td key={key} class="num">
                        {format(values[index] ?? 0)}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        </details>
      </figcaption>
    </figure>
  )
}

/** Rounds up to a number that is easy to read. */
function ceiling(value: number): number {
  const size = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 2.5, 5, 10].map((step) => step * size).find((step) => step >= value) ?? value
}
