// The account: what it may have, what it uses, and how that went month by month.
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

// Of a server that does not have it yet, that part is left out.
type Month = { month: string; buildMinutes: number; storedBytes: number | null }

/** The newest first, without the months before anything was built or stored. */
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
            Go to {it.account.name}
          </button>
        ))}
      </Top>
      <Panel title={account.data?.name ?? 'Account'} call={account.call} pad>
        <Loaded of={account}>
          {(it) => (
            <Facts
              rows={[
                ['Id', <code key="id">{it.id}</code>],
                ['Since', <Time key="since" at={it.createdAt} form="date" />],
                [
                  'You are',
                  `${access.value?.role}${access.value?.projects ? ` of ${access.value.projects.join(', ')}` : ''}`,
                ],
              ]}
            />
          )}
        </Loaded>
      </Panel>
      <Panel title="Used" note="what is full is refused; support can raise a limit" call={account.call} pad>
        <Loaded of={account}>{(it) => <Quotas limits={it.limits} usage={it.usage} />}</Loaded>
      </Panel>
      {usage.data && (
        <Panel title="By month" note="UTC" call={usage.call}>
          <Table
            label="Use by month"
            rows={inUse(usage.data.months)}
            keyOf={({ month }) => month}
            columns={[
              { name: 'Month', cell: ({ month }) => month },
              { name: 'Build minutes', num: true, cell: ({ buildMinutes }) => num(buildMinutes) },
              {
                name: 'Stored at most',
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
                  `${num(limits.requestsPerMinute)} per token and minute, ${num(limits.accountRequestsPerMinute)} for all`,
                ],
                ['At once', `${num(limits.requestsAtOnce)} requests`],
                ['Size', `${bytes(limits.bodyBytes)} per request, ${bytes(limits.zoneImportBytes)} for a zone`],
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
