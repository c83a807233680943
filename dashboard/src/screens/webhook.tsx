// One webhook: what was sent to it, what it answered, and sending it again.
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
  useDue(deliveries.items ?? [], deliveries.refetch)
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
                  ['Id', <code key="id">{it.id}</code>],
                  ['Events', it.events.includes('*') ? 'all' : it.events.join(', ')],
                  ['Made', <Time key="made" at={it.createdAt} form="full" />],
                  ['Changed', <Time key="changed" at={it.updatedAt} />],
                ]}
              />
              {!it.active && (
                <p class="below">
                  <State is="busy">Off</State> Events are kept and not sent. They are sent when it is turned on.
                </p>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      {chosen && <OneDelivery id={id} delivery={chosen} stamp={stampOf(deliveries.items, chosen)} />}
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
              name: 'Answer',
              wide: true,
              cell: (it) => it.responseStatus ?? <span class="soft">{it.error ?? '–'}</span>,
            },
            { name: 'Attempts', num: true, wide: true, cell: (it) => it.attempts },
            { name: 'When', cell: (it) => <Time at={it.createdAt} /> },
          ]}
          empty={
            <Empty title="Nothing was sent yet">
              <p>The next event is sent at once. “Send a test” sends one now.</p>
            </Empty>
          }
        />
      </Panel>
    </>
  )
}

function DeliveryState({ of: { state, attempts, nextAttemptAt } }: { of: Delivery }) {
  if (state === 'DELIVERED') return <State is="ready">Delivered</State>
  if (state === 'FAILED') return <State is="bad">Given up</State>
  if (attempts === 0 || !nextAttemptAt) return <State is="busy">On its way</State>
  return (
    <State is="busy">
      Next try in <Countdown to={nextAttemptAt} />
    </State>
  )
}

/** Deliveries make no events: those under way are read again when their next attempt is due. */
function useDue(items: readonly Delivery[], read: () => void): void {
  const due = items.filter(({ state }) => state === 'PENDING').map((it) => Date.parse(it.nextAttemptAt ?? it.createdAt))
  const [tries, count] = useState(0)
  const first = due.length > 0 ? Math.min(...due) : null
  useEffect(() => {
    if (first === null) return count(0)
    const waitMs = Math.max(first - Date.now(), 0) + Math.min(500 * 2 ** tries, 60_000)
    const timer = setTimeout(
      () => {
        count(tries + 1)
        read()
      },
      Math.min(waitMs, 2 ** 31 - 1),
    )
    return () => clearTimeout(timer)
  }, [first, tries])
}

const stampOf = (items: readonly Delivery[] | undefined, id: string) => {
  const found = items?.find((it) => it.id === id)
  return found && `${found.state} ${found.attempts} ${found.attemptedAt}`
}

/** `stamp` changes when the list has news of it. */
function OneDelivery({ id, delivery, stamp }: { id: string; delivery: string; stamp: string | undefined }) {
  const params = { path: { id, delivery } }
  const found = useQuery(call('get', '/webhooks/{id}/deliveries/{delivery}', { params }))
  useEffect(() => found.refetch(), [stamp])
  const again = call('post', '/webhooks/{id}/deliveries/{delivery}/redeliver', { params })
  return (
    <Panel
      title="One delivery"
      state={found.data && <DeliveryState of={found.data} />}
      call={found.call}
      actions={
        <>
          {may('webhooks:write') && (
            <Act call={again} text="Send it again" done={(made) => go(`/webhooks/${id}?delivery=${made.id}`)} />
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
                  ['Made', <Time key="made" at={it.createdAt} form="full" />],
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
        <State is={isGood ? 'ready' : 'bad'}>{of.responseStatus ?? 'No answer'}</State>
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
