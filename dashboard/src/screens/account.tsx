// The account: its limits, its usage now, and its usage by month.
import {
  access,
  bytes,
  call,
  callPath,
  Facts,
  Loaded,
  me,
  num,
  Panel,
  Table,
  Time,
  Top,
  useQuery,
} from '../kit/index.ts'
import { switchAccount } from '../kit/session.ts'
import { formatOf, Quotas, quotaTitles } from './parts/quotas.tsx'

// Older servers have no such route; the panel is then left out.
type Month = { month: string; buildMinutes: number; storedBytes: number | null }

/** Newest first, without the months before anything was built or stored. */
function inUse(months: Month[]): Month[] {
  const first = months.findIndex(({ buildMinutes, storedBytes }) => buildMinutes > 0 || storedBytes !== null)
  return (first < 0 ? months.slice(-1) : months.slice(first)).toReversed()
}

export default function Account() {
  const account = useQuery(call('get', '/account'), { on: ['*'] })
  const usage = useQuery(access.value?.projects ? null : callPath<{ months: Month[] }>('get', '/account/usage'))
  const others = (me.value?.memberships ?? []).filter((it) => it.account.id !== access.value?.account.id)
  return (
    <>
      <Top title="Account">
        {others.map((it) => (
          <button key={it.account.id} type="button" onClick={() => switchAccount(it.account.id)}>
            Switch to {it.account.name}
          </button>
        ))}
      </Top>
      <Panel title={account.data?.name ?? 'Account'} call={account.call} pad>
        <Loaded of={account}>
          {(it) => (
            <Facts
              rows={[
                ['ID', <code key="id">{it.id}</code>],
                ['Created', <Time key="since" at={it.createdAt} form="date" />],
                [
                  'Your role',
                  `${access.value?.role}${access.value?.projects ? ` of ${access.value.projects.join(', ')}` : ''}`,
                ],
              ]}
            />
          )}
        </Loaded>
      </Panel>
      <Panel title="Usage" note="requests over a limit are refused; support can raise it" call={account.call} pad>
        <Loaded of={account}>{(it) => <Quotas limits={it.limits} usage={it.usage} />}</Loaded>
      </Panel>
      {usage.data && (
        <Panel title="By month" note="UTC" call={usage.call}>
          <Table
            label="Usage by month"
            rows={inUse(usage.data.months)}
            keyOf={({ month }) => month}
            columns={[
              { name: 'Month', cell: ({ month }) => month },
              { name: 'Build minutes', num: true, cell: ({ buildMinutes }) => num(buildMinutes) },
              {
                name: 'Peak storage',
                num: true,
                cell: ({ storedBytes }) => (storedBytes === null ? '–' : bytes(storedBytes)),
              },
            ]}
          />
        </Panel>
      )}
      <Panel title="Other limits" call={account.call} pad>
        <Loaded of={account}>
          {({ limits, usage: used }) => (
            <Facts
              rows={[
                [
                  'Requests',
                  `${num(limits.requestsPerMinute)} per minute per token, ${num(limits.accountRequestsPerMinute)} in total`,
                ],
                ['Concurrent requests', num(limits.requestsAtOnce)],
                ['Request size', `${bytes(limits.bodyBytes)}, or ${bytes(limits.zoneImportBytes)} for a zone`],
                ...Object.keys(quotaTitles)
                  .filter((name) => name in limits && !(name in used))
                  .map((name): [string, string] => [
                    quotaTitles[name]!,
                    formatOf(name)((limits as Record<string, number>)[name]!),
                  ]),
              ]}
            />
          )}
        </Loaded>
      </Panel>
    </>
  )
}
