// Compares a deployment with production: files, size, build time. The API counts files but doesn't list them.
import type { ComponentChildren } from 'preact'
import { bytes, type Call, duration, num, Panel } from '../kit/index.ts'
import { buildMs, type Deployment, median } from './deployment-table.tsx'

type CompareProps = {
  of: Deployment
  /** The deployment in production; undefined if unknown. */
  current: Deployment | undefined
  before: readonly Deployment[]
  call: Call<unknown> | null
}

export function Compare({ of, current, before, call }: CompareProps) {
  if (of.state !== 'READY') return null
  const other = current && current.id !== of.id ? current : undefined
  const usual = median(before.map(buildMs).filter((ms): ms is number => ms !== null))
  const took = buildMs(of)
  return (
    <Panel
      title={other ? 'Compared with production' : 'Size and build time'}
      note={
        other && (
          <>
            <code>{of.commit}</code> vs.{' '}
            <a href={`/deployments/${other.id}`}>
              <code>{other.commit}</code>
            </a>
          </>
        )
      }
      call={call}
    >
      <table>
        <caption class="unseen">Deployment figures</caption>
        <tbody>
          <Row name="Files" value={of.files} before={other?.files} format={num} none="not counted for servers" />
          <Row name="Uncompressed size" value={of.bytes} before={other?.bytes} format={bytes} none="not counted" />
          <Row name="Build" value={took} format={duration} none="–">
            {usual !== null && `median ${duration(usual)}`}
          </Row>
        </tbody>
      </table>
      {other && <p class="note soft">Files are counted, not listed.</p>}
    </Panel>
  )
}

type RowProps = {
  name: string
  value: number | null
  before?: number | null | undefined
  format(value: number): string
  /** Shown if there is no value. */
  none: string
  children?: ComponentChildren
}

function Row({ name, value, before, format, none, children }: RowProps) {
  const change = value !== null && typeof before === 'number' ? value - before : null
  const sign = change !== null && change < 0 ? '−' : '+'
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="num">
        {value === null ? <span class="soft">{none}</span> : format(value)}{' '}
        {change !== null && <span class="soft">({change === 0 ? 'unchanged' : sign + format(Math.abs(change))})</span>}
        {children && <span class="soft">({children})</span>}
      </td>
    </tr>
  )
}
