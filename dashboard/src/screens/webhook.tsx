// A webhook and its deliveries.
import { useEffect, useState } from 'preact/hooks'
import {
  Act,
  Countdown,
  call,
  Empty,
  Facts,
  go,
  ListTable,
  Loaded,
  may,
  num,
  Panel,
  type Params,
  type Schemas,
  State,
  Time,
  Top,
  useList,
  useParam,
  useQuery,
  useTitle,
} from '../kit/index.ts'
import { WebhookActions, WebhookState } from './parts/webhook-actions.tsx'

type Delivery = Schemas['Delivery']

export default function WebhookScreen({ params }: { params: Params }) {
  const id = params.id!
  const path = { path: { id } }
  const hook = useQuery(call('get', '/webhooks/{id}', { params: path }), { on: ['webhook.disabled'] })
  const deliveries = useList(call('get', '/webhooks/{id}/deliveries', { params: { ...path, query: { limit: 50 } } }), {
    on: ['*'],
  })
  useReloadWhenDue(deliveries.items ?? [], deliveries.refetch)
  const [chosen] = useParam('delivery')
  const { data } = hook
  useTitle(data?.url ?? 'Webhook')
  return (
    <>
      <Top
        title={data?.url ?? 'Webhook'}
        trail={<a href="/webhooks">Webhooks</a>}
        state={data && <WebhookState active={data.active} />}
      >
        {data && may('webhooks:write') && <WebhookActions query={hook} hook={data} reread={deliveries.refetch} />}
      </Top>
      <Panel title="Webhook" call={hook.call} pad>
        <Loaded of={hook}>
          {(it) => (
            <>
              <Facts
                rows={[
                  ['ID', <code key="id">{it.id}</code>],
                  ['Events', it.events.includes('*') ? 'all' : it.events.join(', ')],
                  ['Created', <Time key="created" at={it.createdAt} form="full" />],
                  ['Updated', <Time key="changed" at={it.updatedAt} />],
                ]}
              />
              {!it.active && (
                <p class="below">
                  <State is="busy">Off</State> Events are queued until you turn it on.
                </p>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      {chosen && <DeliveryPanel id={id} delivery={chosen} version={versionOf(deliveries.items, chosen)} />}
      <Panel title="Deliveries" note="kept for 30 days" call={deliveries.call}>
        <ListTable
          label="Deliveries"
          of={deliveries}
          keyOf={(it: Delivery) => it.id}
          columns={[
            {
              name: 'Event',
              cell: (it) => (
                <a href={`/webhooks/${id}?delivery=${it.id}`} aria-current={it.id === chosen ? 'true' : undefined}>
                  <code>{it.eventType}</code>
                </a>
              ),
            },
            { name: 'State', cell: (it) => <DeliveryState of={it} /> },
            {
              name: 'Response',
              wide: true,
              cell: (it) => it.responseStatus ?? <span class="soft">{it.error ?? '–'}</span>,
            },
            { name: 'Attempts', num: true, wide: true, cell: (it) => it.attempts },
            { name: 'When', cell: (it) => <Time at={it.createdAt} /> },
          ]}
          empty={
            <Empty title="No deliveries yet">
              <p>Choose Send a test to send one now.</p>
            </Empty>
          }
        />
      </Panel>
    </>
  )
}

function DeliveryState({ of: { state, attempts, nextAttemptAt } }: { of: Delivery }) {
  if (state === 'DELIVERED') return <State is="ready">Delivered</State>
  if (state === 'FAILED') return <State is="bad">Failed</State>
  if (attempts === 0 || !nextAttemptAt) return <State is="busy">Sending</State>
  return (
    <State is="busy">
      Retry in <Countdown to={nextAttemptAt} />
    </State>
  )
}

/** Deliveries send no events, so we reload pending ones when their next attempt is due. */
function useReloadWhenDue(items: readonly Delivery[], read: () => void): void {
  const due = items.filter(({ state }) => state === 'PENDING').map((it) => Date.parse(it.nextAttemptAt ?? it.createdAt))
  const [tries, setTries] = useState(0)
  const first = due.length > 0 ? Math.min(...due) : null
  useEffect(() => {
    if (first === null) return setTries(0)
    const waitMs = Math.max(first - Date.now(), 0) + Math.min(500 * 2 ** tries, 60_000)
    const timer = setTimeout(
      () => {
        setTries(tries + 1)
        read()
      },
      Math.min(waitMs, 2 ** 31 - 1),
    )
    return () => clearTimeout(timer)
  }, [first, tries])
}

const versionOf = (items: readonly Delivery[] | undefined, id: string) => {
  const found = items?.find((it) => it.id === id)
  return found && `${found.state} ${found.attempts} ${found.attemptedAt}`
}

/** `version` changes when the list has a newer state. */
function DeliveryPanel({ id, delivery, version }: { id: string; delivery: string; version: string | undefined }) {
  const params = { path: { id, delivery } }
  const found = useQuery(call('get', '/webhooks/{id}/deliveries/{delivery}', { params }))
  useEffect(() => found.refetch(), [version])
  const again = call('post', '/webhooks/{id}/deliveries/{delivery}/redeliver', { params })
  return (
    <Panel
      title="Delivery"
      state={found.data && <DeliveryState of={found.data} />}
      call={found.call}
      actions={
        <>
          {may('webhooks:write') && (
            <Act call={again} text="Send again" done={(created) => go(`/webhooks/${id}?delivery=${created.id}`)} />
          )}
          <a class="button quiet" href={`/webhooks/${id}`}>
            Close
          </a>
        </>
      }
    >
      <Loaded of={found}>
        {(it) => (
          <>
            <div class="body">
              <Facts
                rows={[
                  [
                    'Event',
                    <span key="event">
                      <code>{it.eventType}</code> <span class="soft">{it.eventId}</span>
                    </span>,
                  ],
                  ['Created', <Time key="created" at={it.createdAt} form="full" />],
                ]}
              />
            </div>
            <ol class="attempts">
              {it.attemptLog.map((attempt) => (
                <Attempt key={attempt.attempt} of={attempt} />
              ))}
            </ol>
          </>
        )}
      </Loaded>
    </Panel>
  )
}

function Attempt({ of }: { of: Schemas['DeliveryAttempt'] }) {
  const isGood = of.error === null && of.responseStatus !== null
  return (
    <li>
      <p class="row wrap">
        <b>Attempt {of.attempt}</b>
        <State is={isGood ? 'ready' : 'bad'}>{of.responseStatus ?? 'No response'}</State>
        <span class="soft">
          <Time at={of.startedAt} form="clock" />
          {of.durationMs !== null && `, ${num(of.durationMs)} ms`}
        </span>
        {of.error && <span>{of.error}</span>}
      </p>
      {of.responseBody && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
        <pre tabIndex={0}>{of.responseBody}</pre>
      )}
    </li>
  )
}
