// The operator's accounts: create, suspend and resume one, and set its limits.
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
import { Refresh } from './refresh.tsx'
import { SecretOnce } from './secret.tsx'

type Account = Schemas['OperatorAccount']

const AccountState = ({ of }: { of: Account }) => (
  <State is={of.suspended ? 'bad' : 'ready'}>{of.suspended ? 'Suspended' : 'Active'}</State>
)

export function Accounts() {
  const list = useList(call('get', '/operator/accounts', { params: { query: { limit: 50 } } }))
  const creating = useDialog()
  return (
    <Panel
      title="Accounts"
      call={list.call}
      actions={
        <>
          <Refresh of={list} />
          <button type="button" onClick={creating.open}>
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
          { name: 'ID', wide: true, cell: ({ id }) => <code class="soft">{id}</code> },
          { name: 'Created', wide: true, cell: ({ createdAt }) => <Time at={createdAt} form="date" /> },
        ]}
        empty={<Empty title="No accounts" />}
      />
      <Dialog of={creating} title="New account">
        <NewAccount close={creating.close} done={list.refetch} />
      </Dialog>
    </Panel>
  )
}

function NewAccount({ close, done }: { close(): void; done(): void }) {
  const [created, setCreated] = useState<Schemas['NewAccount'] | null>(null)
  if (created) {
    return (
      <SecretOnce
        secret={created.secret}
        what="test key"
        of={{ close }}
        curl={`curl ${location.origin}/api/account -H "Authorization: Bearer ${created.secret}"`}
      >
        <p>
          <State is="ready">{created.name}</State> was created. Its test key has full access to it.
        </p>
      </SecretOnce>
    )
  }
  return (
    <Form
      call={({ name = '' }) => call('post', '/operator/accounts', { body: { name } })}
      submit="Create the account"
      cancel={close}
      done={(account) => {
        setCreated(account)
        done()
      }}
    >
      <Field name="name" label="Name" autoFocus />
    </Form>
  )
}

export function AccountDetails({ id }: { id: string }) {
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
      <Panel title="Account" call={account.call} actions={<Refresh of={account} />} pad>
        <Loaded of={account}>
          {(it) => (
            <Facts
              rows={[
                ['ID', <code key="id">{it.id}</code>],
                ['Created', <Time key="since" at={it.createdAt} form="full" />],
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
        note={limits.data && Object.keys(limits.data.changed).length === 0 ? 'platform defaults' : undefined}
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
                  Set for this account:{' '}
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
            Tokens and pushes are refused, builds are canceled, servers stop, and sites respond with 403. Resuming
            restores everything but the builds.
          </p>
          <Select
            name="dns"
            label="DNS"
            value="serve"
            options={[
              { value: 'serve', text: 'Keep answering: email and other hosts work' },
              { value: 'refuse', text: 'Refuse queries for its zones' },
            ]}
          />
          <Field name="reason" label="Reason, shown to the owner" lines={3} />
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
  /** Only changed limits; an empty field returns to the platform's default. */
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
      submit="Save the limits"
      cancel={close}
      done={done}
    >
      <p class="soft">Leave a field empty for the platform's default. Lowering a limit deletes nothing.</p>
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
