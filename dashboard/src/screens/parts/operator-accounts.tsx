// Accounts of the installation: open one, suspend and resume it, and set its limits.
import { useState } from 'preact/hooks'
import {
  Act,
  call,
  Dialog,
  Empty,
  Facts,
  Field,
  Form,
  ListTable,
  Loaded,
  Panel,
  type Schemas,
  Select,
  State,
  Time,
  Top,
  toast,
  useDialog,
  useList,
  useQuery,
  useTitle,
  type Values,
} from '../../kit/index.ts'
import { formatOf, Quotas, quotaTitles } from './quotas.tsx'
import { ReadAgain } from './read-again.tsx'
import { SecretOnce } from './secret.tsx'

type Account = Schemas['OperatorAccount']

const AccountState = ({ of }: { of: Account }) => (
  <State is={of.suspended ? 'bad' : 'ready'}>{of.suspended ? 'Suspended' : 'Active'}</State>
)

export function AllAccounts() {
  const list = useList(call('get', '/operator/accounts', { params: { query: { limit: 50 } } }))
  const making = useDialog()
  return (
    <Panel
      title="Accounts"
      call={list.call}
      actions={
        <>
          <ReadAgain of={list} />
          <button type="button" onClick={making.open}>
            New account
          </button>
        </>
      }
    >
      <ListTable
        label="Accounts"
        of={list}
        keyOf={(it: Account) => it.id}
        columns={[
          {
            name: 'Account',
            cell: ({ id, name }) => (
              <a href={`/operator/accounts/${id}`}>
                <b>{name}</b>
              </a>
            ),
          },
          { name: 'State', cell: (it) => <AccountState of={it} /> },
          { name: 'Id', wide: true, cell: ({ id }) => <code class="soft">{id}</code> },
          { name: 'Since', wide: true, cell: ({ createdAt }) => <Time at={createdAt} form="date" /> },
        ]}
        empty={<Empty title="No account" />}
      />
      <Dialog of={making} title="New account">
        <NewAccount close={making.close} done={list.refetch} />
      </Dialog>
    </Panel>
  )
}

function NewAccount({ close, done }: { close(): void; done(): void }) {
  const [made, keep] = useState<Schemas['NewAccount'] | null>(null)
  if (made) {
    return (
      <SecretOnce
        secret={made.secret}
        what="test key"
        of={{ close }}
        curl={`curl ${location.origin}/api/account -H "Authorization: Bearer ${made.secret}"`}
      >
        <p>
          <State is="ready">{made.name}</State> is there. Its test key may do everything in it.
        </p>
      </SecretOnce>
    )
  }
  return (
    <Form
      call={({ name = '' }) => call('post', '/operator/accounts', { body: { name } })}
      submit="Make the account"
      cancel={close}
      done={(account) => {
        keep(account)
        done()
      }}
    >
      <Field name="name" label="Name" autoFocus />
    </Form>
  )
}

export function OneAccount({ id }: { id: string }) {
  const params = { path: { id } }
  const account = useQuery(call('get', '/operator/accounts/{id}', { params }))
  const limits = useQuery(call('get', '/operator/accounts/{id}/limits', { params }))
  const suspending = useDialog()
  const changing = useDialog()
  const { data } = account
  useTitle(data?.name ?? 'Account')
  const change = (body: Schemas['ChangeAccount']) => call('patch', '/operator/accounts/{id}', { params, body })
  return (
    <>
      <Top
        title={data?.name ?? 'Account'}
        trail={<a href="/operator/accounts">Accounts</a>}
        state={data && <AccountState of={data} />}
      >
        {data?.suspended === true && <Act call={change({ suspended: false })} text="Resume" done={account.refetch} />}
        {data?.suspended === false && (
          <button type="button" class="danger" onClick={suspending.open}>
            Suspend
          </button>
        )}
      </Top>
      <Panel title="Account" call={account.call} actions={<ReadAgain of={account} />} pad>
        <Loaded of={account}>
          {(it) => (
            <Facts
              rows={[
                ['Id', <code key="id">{it.id}</code>],
                ['Since', <Time key="since" at={it.createdAt} form="full" />],
                ...(it.suspendedAt
                  ? ([
                      ['Suspended', <Time key="at" at={it.suspendedAt} form="full" />],
                      ['Reason', it.suspension?.reason ?? '–'],
                      ['DNS', it.suspension?.dns === 'refuse' ? 'refused' : 'answered'],
                    ] as [string, preact.ComponentChildren][])
                  : []),
              ]}
            />
          )}
        </Loaded>
      </Panel>
      <Panel
        title="Limits"
        note={limits.data && Object.keys(limits.data.changed).length === 0 ? 'those of the platform' : undefined}
        call={limits.call}
        actions={
          <button type="button" onClick={changing.open}>
            Change limits
          </button>
        }
        pad
      >
        <Loaded of={limits}>
          {(it) => (
            <>
              <Quotas limits={it.limits} usage={it.usage} />
              {Object.keys(it.changed).length > 0 && (
                <p class="soft below">
                  Set for this account alone:{' '}
                  {Object.entries(it.changed)
                    .map(([name, value]) => `${quotaTitles[name] ?? name} ${formatOf(name)(value as number)}`)
                    .join(', ')}
                </p>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      <Dialog of={suspending} title={`Suspend ${data?.name}?`}>
        <Form
          call={({ dns, reason }) => change({ suspended: true, dns: dns as 'serve', ...(reason && { reason }) })}
          submit="Suspend the account"
          danger
          cancel={suspending.close}
          done={() => {
            suspending.close()
            toast('The account is suspended.')
            account.refetch()
          }}
        >
          <p>
            Tokens and pushes are refused, builds canceled, servers stopped, and sites answer 403. Resuming restores all
            but the builds.
          </p>
          <Select
            name="dns"
            label="DNS meanwhile"
            value="serve"
            options={[
              { value: 'serve', text: 'answer: mail and other hosts go on' },
              { value: 'refuse', text: 'refuse its zones' },
            ]}
          />
          <Field name="reason" label="Reason, for the owner to read" lines={3} />
        </Form>
      </Dialog>
      <Dialog of={changing} title="Limits of this account">
        {limits.data && (
          <ChangeLimits
            of={limits.data}
            id={id}
            close={changing.close}
            done={() => {
              changing.close()
              limits.refetch()
            }}
          />
        )}
      </Dialog>
    </>
  )
}

type LimitsProps = { id: string; of: Schemas['AccountLimits']; close(): void; done(): void }

function ChangeLimits({ id, of, close, done }: LimitsProps) {
  const now = of.changed as Record<string, number>
  /** Only what differs; an empty field returns to the platform's limit. */
  const bodyFrom = (values: Values) =>
    Object.fromEntries(
      Object.keys(of.limits)
        .filter((name) => (values[name] ?? '') !== String(now[name] ?? ''))
        .map((name) => [name, values[name] ? Number(values[name]) : null]),
    )
  return (
    <Form
      call={(values) =>
        call('patch', '/operator/accounts/{id}/limits', { params: { path: { id } }, body: bodyFrom(values) })
      }
      submit="Set the limits"
      cancel={close}
      done={done}
    >
      <p class="soft">An empty field is the platform’s own limit. Nothing is deleted by a lower one.</p>
      <div class="two">
        {Object.entries(of.limits).map(([name, limit]) => (
          <Field
            key={name}
            name={name}
            label={quotaTitles[name] ?? name}
            type="number"
            value={now[name] === undefined ? '' : String(now[name])}
            placeholder={String(limit)}
          />
        ))}
      </div>
    </Form>
  )
}
