// Tickets as customers and support see them: the list and the conversation.
import { useState } from 'preact/hooks'
import {
  Act,
  type Column,
  ConfirmButton,
  callPath,
  Facts,
  Field,
  Form,
  Loaded,
  More,
  Panel,
  type Schemas,
  State,
  Time,
  type Tone,
  Top,
  toast,
  toastError,
  useAct,
  useList,
  useQuery,
  useTitle,
} from '../../kit/index.ts'
import { Filter, Filters, FindBox } from './filters.tsx'
import { screenOf } from './json.tsx'

type Ticket = Schemas['Ticket'] & Partial<Pick<Schemas['OperatorTicket'], 'account'>>
type Status = Ticket['status']
export type Side = 'customer' | 'support'

const states: Record<Status, Record<Side, [Tone, string]>> = {
  OPEN: { customer: ['busy', 'Waiting for support'], support: ['bad', 'New'] },
  IN_PROGRESS: { customer: ['busy', 'In progress'], support: ['busy', 'In progress'] },
  WAITING: { customer: ['bad', 'Waiting for you'], support: ['off', 'Waiting for the customer'] },
  RESOLVED: { customer: ['ready', 'Resolved'], support: ['ready', 'Resolved'] },
  CLOSED: { customer: ['off', 'Closed'], support: ['off', 'Closed'] },
}
const statuses = Object.keys(states) as Status[]
export const priorities = ['low', 'normal', 'high', 'urgent'] as const

/** The statuses support can set; the API has the same table. */
const nextStatuses: Record<Status, Status[]> = {
  OPEN: ['IN_PROGRESS'],
  IN_PROGRESS: ['WAITING', 'RESOLVED'],
  WAITING: ['IN_PROGRESS', 'RESOLVED'],
  RESOLVED: ['CLOSED'],
  CLOSED: [],
}

export function TicketState({ status, side }: { status: Status; side: Side }) {
  const [tone, word] = states[status][side]
  return <State is={tone}>{word}</State>
}

export const ticketFilters = ['status', 'priority', 'search'] as const

export const TicketFilters = () => (
  <Filters>
    <Filter
      name="status"
      label="State"
      options={{
        '': 'Any state',
        ...Object.fromEntries(statuses.map((status) => [status, states[status].support[1]])),
      }}
    />
    <Filter
      name="priority"
      label="Priority"
      options={{ '': 'Any priority', ...Object.fromEntries(priorities.map((it) => [it, it])) }}
    />
    <FindBox name="search" label="Subject" hint="any words" />
  </Filters>
)

export function ticketColumns(side: Side): Column<Ticket>[] {
  const base = side === 'support' ? '/operator/tickets' : '/tickets'
  return [
    {
      name: 'Subject',
      cell: ({ id, subject, account }) => (
        <>
          <a href={`${base}/${id}`}>
            <b>{subject}</b>
          </a>
          {account && <div class="soft">{account.name}</div>}
        </>
      ),
    },
    { name: 'State', cell: ({ status }) => <TicketState status={status} side={side} /> },
    { name: 'Priority', wide: true, cell: ({ priority }) => <Priority is={priority} /> },
    { name: 'Updated', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
  ]
}

const Priority = ({ is }: { is: Ticket['priority'] }) =>
  is === 'urgent' || is === 'high' ? <b>{is}</b> : <span class="soft">{is}</span>

type ThreadProps = { id: string; side: Side; may: boolean }

export function Thread({ id, side, may }: ThreadProps) {
  const base = `${side === 'support' ? '/operator' : ''}/tickets/${id}`
  const when = ({ subject }: { subject: string }) => subject === id
  const ticket = useQuery(callPath<Ticket>('get', base), { on: ['ticket.*'], when })
  const messages = useList(
    callPath<Schemas['TicketMessageList']>('get', `${base}/messages`, {
      params: { query: { order: 'asc', limit: 100 } },
    }),
    { on: ['ticket.*'], when },
  )
  const reread = () => {
    ticket.refetch()
    messages.refetch()
  }
  const { data } = ticket
  useTitle(data?.subject ?? 'Ticket')
  const screen = data?.related ? screenOf(data.related, data.related.includes('.') ? 'domain' : '') : null
  return (
    <>
      <Top
        title={data?.subject ?? 'Ticket'}
        trail={<a href={side === 'support' ? '/operator/tickets' : '/tickets'}>Tickets</a>}
        state={data && <TicketState status={data.status} side={side} />}
      >
        {data && may && data.status !== 'CLOSED' && <StatusActions of={data} side={side} base={base} done={reread} />}
      </Top>
      <Panel title="Ticket" call={ticket.call} pad>
        <Loaded of={ticket}>
          {(it) => (
            <Facts
              rows={[
                ['ID', <code key="id">{it.id}</code>],
                ...(it.account
                  ? [
                      [
                        'Account',
                        <a key="account" href={`/operator/accounts/${it.account.id}`}>
                          {it.account.name}
                        </a>,
                      ] as [string, preact.JSX.Element],
                    ]
                  : []),
                [
                  'Priority',
                  may && it.status !== 'CLOSED' ? (
                    <PrioritySelect key="p" of={it} base={base} done={ticket.refetch} />
                  ) : (
                    it.priority
                  ),
                ],
                [
                  'Related to',
                  it.related ? (
                    screen ? (
                      <a key="r" href={screen}>
                        {it.related}
                      </a>
                    ) : (
                      it.related
                    )
                  ) : (
                    '–'
                  ),
                ],
                ['Opened', <Time key="opened" at={it.createdAt} form="full" />],
              ]}
            />
          )}
        </Loaded>
      </Panel>
      <Panel title="Conversation" call={messages.call}>
        <Loaded of={messages}>
          {({ messages: all }) => (
            <>
              <ol class="thread">
                {all.map((it) => (
                  <li key={it.id} class={it.author}>
                    <p>
                      <b>{it.author === side ? 'You' : it.author === 'support' ? 'Support' : 'Customer'}</b>{' '}
                      <span class="soft">
                        <Time at={it.createdAt} />
                      </span>
                    </p>
                    <p class="text" dir="auto">
                      {it.message}
                    </p>
                  </li>
                ))}
              </ol>
              <More of={messages} />
            </>
          )}
        </Loaded>
        {may && data && data.status !== 'CLOSED' && (
          <Reply base={base} status={data.status} side={side} done={reread} />
        )}
        {data?.status === 'CLOSED' && (
          <p class="soft body">This ticket is closed. Open a new one if you need more help.</p>
        )}
      </Panel>
    </>
  )
}

type OneProps = { of: Ticket; base: string; done(): void }

function PrioritySelect({ of, base, done }: OneProps) {
  const to = (priority: string) => callPath('patch', base, { body: { priority } })
  const [busy, run] = useAct('Set the priority', to(of.priority))
  return (
    <select
      aria-label="Priority"
      value={of.priority}
      disabled={busy}
      onInput={(event) => void run(to(event.currentTarget.value)).catch(toastError).finally(done)}
    >
      {priorities.map((it) => (
        <option key={it}>{it}</option>
      ))}
    </select>
  )
}

const verbs: Record<Status, string> = {
  OPEN: 'Reopen',
  IN_PROGRESS: 'Start',
  WAITING: 'Wait for the customer',
  RESOLVED: 'Resolve',
  CLOSED: 'Close',
}

function StatusActions({ of, side, base, done }: OneProps & { side: Side }) {
  const to = (status: Status) => callPath<Ticket>('patch', base, { body: { status } })
  if (side === 'support') {
    return (
      <>
        {nextStatuses[of.status].map((status) => (
          <Act key={status} call={to(status)} text={verbs[status]} done={done} />
        ))}
      </>
    )
  }
  return (
    <ConfirmButton
      text="Close the ticket"
      kind=""
      title="Close the ticket?"
      action="Close the ticket"
      call={to('CLOSED')}
      done={() => {
        toast('The ticket is closed.')
        done()
      }}
    >
      <p>You can't reply to a closed ticket or reopen it.</p>
    </ConfirmButton>
  )
}

type ReplyProps = { base: string; status: Status; side: Side; done(): void }

function Reply({ base, status, side, done }: ReplyProps) {
  // A new key empties the field.
  const [sent, setSent] = useState(0)
  const waits = 'The ticket then waits for the customer.'
  const hints: Partial<Record<Status, string>> =
    side === 'support'
      ? { OPEN: waits, IN_PROGRESS: waits }
      : { RESOLVED: 'Your reply reopens the ticket.', WAITING: 'Support continues once you reply.' }
  return (
    <Form
      key={sent}
      call={({ message = '' }) => callPath('post', `${base}/messages`, { body: { message } })}
      submit="Send"
      done={() => {
        setSent(sent + 1)
        done()
      }}
    >
      <Field
        name="message"
        label={side === 'support' ? 'Reply to the customer' : 'Reply'}
        lines={4}
        hint={hints[status]}
      />
    </Form>
  )
}
