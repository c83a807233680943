// The traffic of a project or a zone as a plot and a table, with the range in the URL.
import { useMemo } from 'preact/hooks'
import {
  bytes,
  call,
  Empty,
  Loaded,
  num,
  Panel,
  Plot,
  type Schemas,
  type Series,
  Table,
  useParam,
  useQuery,
} from '../kit/index.ts'
import { Filter } from './parts/filters.tsx'

type Traffic = Schemas['ProjectTraffic']

const hourMs = 3_600_000
const ranges = {
  hour: { text: 'Last hour', ms: hourMs, step: 'minute', unit: 'minute' },
  '': { text: 'Last 24 hours', ms: 24 * hourMs, step: 'hour', unit: 'hour' },
  week: { text: 'Last 7 days', ms: 7 * 24 * hourMs, step: 'hour', unit: 'hour' },
  month: { text: 'Last 30 days', ms: 30 * 24 * hourMs, step: 'day', unit: 'day' },
  year: { text: 'Last year', ms: 365 * 24 * hourMs, step: 'day', unit: 'day' },
} as const
type Range = keyof typeof ranges
const rangeTexts = Object.fromEntries(Object.entries(ranges).map(([key, { text }]) => [key, text]))

/** The range in the URL. Its start is fixed when it is chosen; reloading extends it to now. */
export function useRange() {
  const [key] = useParam('range')
  const { ms, ...range } = ranges[(key in ranges ? key : '') as Range]
  const from = useMemo(() => new Date(Math.floor((Date.now() - ms) / 60_000) * 60_000).toISOString(), [ms])
  return { ...range, from, days: ms > 2 * 24 * hourMs }
}

export const RangeFilter = () => <Filter name="range" label="Range" options={rangeTexts} />

const metrics = {
  '': {
    text: 'Requests',
    series: (all: Traffic['buckets']): Series[] => [
      { name: 'Requests', values: all.map(({ requests }) => requests) },
      { name: '4xx', values: all.map(({ status }) => status['4xx']), tone: 'busy' },
      { name: '5xx', values: all.map(({ status }) => status['5xx']), tone: 'bad' },
    ],
    format: num,
  },
  bytes: {
    text: 'Bytes sent',
    series: (all: Traffic['buckets']): Series[] => [{ name: 'Bytes sent', values: all.map((it) => it.bytes) }],
    format: bytes,
  },
  time: {
    text: 'Response time',
    series: (all: Traffic['buckets']): Series[] => [
      { name: 'p95', values: all.map(({ durationMs }) => durationMs.p95 ?? 0) },
      { name: 'Mean', values: all.map(({ durationMs }) => durationMs.mean ?? 0), tone: 'soft' },
    ],
    format: (ms: number) => `${num(ms)} ms`,
  },
} as const
type Metric = keyof typeof metrics

/** `brief`: a day's requests, for the overview. */
export function TrafficPanel({ project, brief = false }: { project: string; brief?: boolean }) {
  const range = useRange()
  const [shown] = useParam('show')
  const [host] = useParam('host')
  const { text, series, format } = metrics[(!brief && shown in metrics ? shown : '') as Metric]
  const query = { from: range.from, step: range.step, ...(!brief && host && { host }) }
  const traffic = useQuery(call('get', '/projects/{project}/traffic', { params: { path: { project }, query } }))
  const totals = traffic.data?.totals
  return (
    <>
      <Panel
        title="Traffic"
        note={brief ? <a href={`/projects/${project}/traffic`}>More</a> : undefined}
        actions={<RefreshButton of={traffic} />}
        call={traffic.call}
      >
        {!brief && (
          <div class="filters">
            <RangeFilter />
            <Filter
              name="show"
              label="Metric"
              options={Object.fromEntries(Object.entries(metrics).map(([key, it]) => [key, it.text]))}
            />
            <Filter name="host" label="Host" options={hostOptions(traffic.data, host)} />
          </div>
        )}
        <Loaded of={traffic}>
          {({ buckets }) =>
            totals && totals.requests > 0 ? (
              <>
                <p class="lead-figures">
                  <b class="figure">{num(totals.requests)}</b> requests ·{' '}
                  <span class="figure">{bytes(totals.bytes)}</span> sent ·{' '}
                  <span class="figure">{num(totals.status['5xx'])}</span> failed
                  {totals.durationMs.p95 !== null && (
                    <>
                      {' · '}95% within <span class="figure">{num(totals.durationMs.p95)} ms</span>
                    </>
                  )}
                  <span class="soft"> · {range.text.toLowerCase()}</span>
                </p>
                <Plot
                  label={`${text} per ${range.unit}`}
                  times={buckets.map(({ at }) => at)}
                  series={withValues(series(buckets))}
                  format={format}
                  days={range.days}
                />
              </>
            ) : (
              <Empty title="No requests in this period">
                <p>Figures update once a minute. Open the project, then refresh in a minute.</p>
              </Empty>
            )
          }
        </Loaded>
      </Panel>
      {!brief && traffic.data && traffic.data.hosts.length > 0 && (
        <Panel title="By host" call={traffic.call}>
          <Table
            label="Traffic by host"
            rows={traffic.data.hosts}
            keyOf={({ host }) => host ?? ''}
            columns={[
              { name: 'Host', cell: (it) => it.host ?? <span class="soft">all others</span> },
              { name: 'Requests', num: true, cell: (it) => num(it.requests) },
              { name: 'Bytes sent', num: true, cell: (it) => bytes(it.bytes) },
            ]}
          />
        </Panel>
      )}
    </>
  )
}

/** Leaves out other series without values, such as failures. */
const withValues = ([first, ...others]: Series[]): Series[] =>
  first ? [first, ...others.filter(({ values }) => values.some((value) => value > 0))] : []

function hostOptions(traffic: Traffic | undefined, host: string): Record<string, string> {
  const names = [...(traffic?.hosts ?? []).map((it) => it.host), host].filter((name): name is string => !!name)
  return { '': 'All hosts', ...Object.fromEntries(names.map((name) => [name, name])) }
}

function RefreshButton({ of }: { of: { refetch(): void; loading: boolean } }) {
  return (
    <button type="button" class="quiet" disabled={of.loading} onClick={of.refetch}>
      Refresh
    </button>
  )
}

/** The DNS queries of a zone. */
export function DnsTrafficPanel({ domain }: { domain: string }) {
  const range = useRange()
  const query = { from: range.from, step: range.step }
  const traffic = useQuery(call('get', '/dns/{domain}/traffic', { params: { path: { domain }, query } }))
  return (
    <Panel title="Queries" actions={<RefreshButton of={traffic} />} call={traffic.call}>
      <div class="filters">
        <RangeFilter />
      </div>
      <Loaded of={traffic}>
        {({ buckets, totals }) =>
          totals.questions > 0 ? (
            <>
              <p class="lead-figures">
                <b class="figure">{num(totals.questions)}</b> queries
                {Object.entries(totals.types)
                  .filter(([, count]) => count > 0)
                  .sort(([, one], [, other]) => other - one)
                  .slice(0, 5)
                  .map(([type, count]) => ` · ${type} ${num(count)}`)}
                <span class="soft"> · {range.text.toLowerCase()}</span>
              </p>
              <Plot
                label={`Queries per ${range.unit}`}
                times={buckets.map(({ at }) => at)}
                series={withValues([
                  { name: 'Queries', values: buckets.map(({ questions }) => questions) },
                  { name: 'NXDOMAIN', values: buckets.map(({ rcodes }) => rcodes.NXDOMAIN ?? 0), tone: 'busy' },
                  { name: 'SERVFAIL', values: buckets.map(({ rcodes }) => rcodes.SERVFAIL ?? 0), tone: 'bad' },
                ])}
                days={range.days}
              />
            </>
          ) : (
            <Empty title="No queries in this period">
              <p>Figures update once a minute.</p>
            </Empty>
          )
        }
      </Loaded>
    </Panel>
  )
}
