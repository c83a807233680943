// The tokens of the account, and a single token with its access, dependents and actions.
import { useState } from 'preact/hooks'
import {
  type Call,
  ConfirmButton,
  call,
  Dialog,
  type DialogState,
  Empty,
  Facts,
  Field,
  Form,
  go,
  ListPage,
  Loaded,
  may,
  now,
  Panel,
  type Params,
  type Schemas,
  State,
  Table,
  Time,
  Top,
  toast,
  useDialog,
  useList,
  useQuery,
  useTitle,
} from '../kit/index.ts'
import { describeScopes, ownScopes, ScopeTable } from './parts/scopes.tsx'
import { SecretOnce } from './parts/secret.tsx'
import { Access, NarrowToken, NewToken, RotateToken } from './parts/token-forms.tsx'
import { type NameOf, useNames, Who } from './parts/who.tsx'

export type Token = Schemas['Token']
type Secret = Schemas['TokenWithSecret']

export default function Tokens({ params }: { params: Params }) {
  return params.id ? <TokenScreen id={params.id} /> : <TokenList />
}

const listTokens = () => call('get', '/tokens', { params: { query: { limit: 100 } } })

function TokenList() {
  const list = useList(listTokens(), { on: ['token.*'] })
  const creating = useDialog()
  const names = useNames()
  return (
    <>
      <ListPage
        title="Tokens"
        panel="Active tokens"
        note="revoked and expired ones are not listed"
        create={{ text: 'New token', scope: 'tokens:write', open: creating.open }}
        of={list}
        keyOf={(token: Token) => token.id}
        columns={[
          {
            name: 'Token',
            cell: ({ id, name, prefix }) => (
              <>
                <a href={`/tokens/${id}`}>
                  <b>{name}</b>
                </a>
                <div class="soft">
                  <code>{prefix}…</code>
                </div>
              </>
            ),
          },
          { name: 'Access', cell: (token) => <Access of={token} /> },
          { name: 'Last used', wide: true, cell: ({ lastUsedAt }) => <Used at={lastUsedAt} /> },
          { name: 'Expires', cell: ({ expiresAt }) => <Expiry at={expiresAt} /> },
          { name: 'Created by', wide: true, cell: (token) => <Creator of={token} names={names} /> },
        ]}
        empty={{
          title: 'No tokens yet',
          text: 'A token gives CI, a script or the SDK only the access it needs.',
        }}
      />
      <Dialog of={creating} title="New token" wide>
        <SecretFlow of={creating}>{(done) => <NewToken cancel={creating.close} done={done} />}</SecretFlow>
      </Dialog>
    </>
  )
}

/** A form that creates a token, and then shows its secret. */
function SecretFlow({
  of,
  children,
}: {
  of: DialogState
  children: (done: (token: Secret) => void) => preact.ComponentChildren
}) {
  const [created, setCreated] = useState<Secret | null>(null)
  if (!created) return <>{children(setCreated)}</>
  return (
    <SecretOnce
      of={of}
      secret={created.secret}
      what="secret"
      curl={`curl ${location.origin}/api/tokens/current -H "Authorization: Bearer ${created.secret}"`}
    >
      <p>
        <State is="ready">{created.name}</State> Access: {describeScopes(created.scopes)}
        {created.projects && ` in ${created.projects.join(', ')}`}. Try it with the command below.
      </p>
    </SecretOnce>
  )
}

const Used = ({ at }: { at: string | null }) => (at ? <Time at={at} /> : <span class="soft">never</span>)

const soonMs = 7 * 86_400_000

function Expiry({ at }: { at: string | null }) {
  if (!at) return <span class="soft">never</span>
  if (Date.parse(at) - now.value > soonMs) return <Time at={at} form="date" />
  return (
    <State is="busy">
      <Time at={at} />
    </State>
  )
}

function Creator({ of, names }: { of: Token; names: NameOf }) {
  const by = of.createdBy ?? of.parentId
  return by ? <Who id={by} names={names} /> : <span class="soft">the command line</span>
}

function TokenScreen({ id }: { id: string }) {
  const when = ({ subject }: { subject: string }) => subject === id
  const token = useQuery(call('get', '/tokens/{id}', { params: { path: { id } } }), { on: ['token.*'], when })
  const list = useList(listTokens(), { on: ['token.*'] })
  const { data } = token
  const dependents = data ? dependentsOf(list.items ?? [], data) : []
  const names = useNames()
  useTitle(data?.name ?? 'Token')
  return (
    <>
      <Top title={data?.name ?? 'Token'} trail={<a href="/tokens">Tokens</a>}>
        {data && may('tokens:write') && <Actions token={data} dependents={dependents} />}
      </Top>
      <Panel title="Token" call={token.call} pad>
        <Loaded of={token}>
          {(it) => (
            <Facts
              rows={[
                ['ID', <code key="id">{it.id}</code>],
                ['Secret', <code key="secret">{it.prefix}…</code>],
                ['Access', it.scopes.includes('*') ? 'everything, including future scopes' : describeScopes(it.scopes)],
                ['Projects', it.projects ? it.projects.join(', ') : 'all'],
                [
                  'SecretFlow',
                  <span key="created">
                    <Time at={it.createdAt} form="full" /> by <Creator of={it} names={names} />
                  </span>,
                ],
                ['Last used', <Used key="used" at={it.lastUsedAt} />],
                ['Expires', <Expiry key="end" at={it.expiresAt} />],
                [
                  'History',
                  <a key="events" href={`/events?subject=${it.id}`}>
                    Events about it
                  </a>,
                ],
              ]}
            />
          )}
        </Loaded>
      </Panel>
      {data && !data.scopes.includes('*') && (
        <Panel title="What it can do" call={token.call}>
          <ScopeTable label="Scopes of the token" of={[{ name: 'Access', scopes: data.scopes }]} />
        </Panel>
      )}
      <Panel title="Revoked with it" call={list.call}>
        <Table
          label="Revoked with it"
          rows={dependents}
          keyOf={({ id: key }) => key}
          columns={[
            { name: 'Token', cell: (it) => <a href={`/tokens/${it.id}`}>{it.name}</a> },
            { name: 'Access', cell: (it) => <Access of={it} /> },
            { name: 'Last used', cell: ({ lastUsedAt }) => <Used at={lastUsedAt} /> },
          ]}
          empty={<Empty title="None">A token can create others with the same access or less.</Empty>}
        />
      </Panel>
    </>
  )
}

/** The tokens revoked with this one: its lineage, named after its first token, and all that these created. */
function dependentsOf(all: readonly Token[], { id, lineage }: Token): Token[] {
  const dependents = new Set([lineage])
  // Iteration reaches the added ones too.
  for (const one of dependents)
    for (const it of all) if ([it.lineage, it.parentId, it.creatorId].includes(one)) dependents.add(it.id)
  return all.filter((it) => it.id !== id && dependents.has(it.id))
}

function Actions({ token, dependents }: { token: Token; dependents: Token[] }) {
  const [renaming, rotating, narrowing] = [useDialog(), useDialog(), useDialog()]
  const { id, name } = token
  const path = { params: { path: { id } } }
  const own = ownScopes()
  const canChange = own.includes('*') || token.scopes.every((scope) => own.includes(scope))
  if (!canChange) return <span class="soft">It has more access than you, so you can't change it.</span>
  return (
    <>
      <button type="button" onClick={renaming.open}>
        Rename
      </button>
      <button type="button" onClick={narrowing.open}>
        Narrow
      </button>
      <button type="button" onClick={rotating.open}>
        Rotate
      </button>
      <ConfirmButton
        text="Revoke"
        kind="danger"
        title={`Revoke ${name}?`}
        action="Revoke the token"
        call={call('delete', '/tokens/{id}', path) as Call<unknown>}
        done={() => {
          toast(`${name} is revoked.`)
          go('/tokens')
        }}
      >
        <p>Requests with it are refused within a second. You can't undo this.</p>
        <p>
          {token.lastUsedAt ? (
            <>
              It was last used <Time at={token.lastUsedAt} />.
            </>
          ) : (
            'It was never used.'
          )}
        </p>
        {dependents.length > 0 && (
          <p>
            <State is="bad">
              {dependents.length === 1 ? '1 token is' : `${dependents.length} tokens are`} revoked with it
            </State>{' '}
            {dependents.map((it) => it.name).join(', ')}
          </p>
        )}
      </ConfirmButton>
      <Dialog of={renaming} title={`Rename ${name}`}>
        <Form
          call={(values) => call('patch', '/tokens/{id}', { ...path, body: { name: values.name ?? '' } })}
          submit="Rename"
          cancel={renaming.close}
          done={renaming.close}
        >
          <Field name="name" label="Name" value={name} autoFocus />
        </Form>
      </Dialog>
      <Dialog of={narrowing} title={`Narrow ${name}`} wide>
        <NarrowToken token={token} cancel={narrowing.close} done={narrowing.close} />
      </Dialog>
      <Dialog of={rotating} title={`Rotate ${name}`}>
        <SecretFlow of={{ ...rotating, close: () => go('/tokens') }}>
          {(done) => <RotateToken token={token} dependents={dependents} cancel={rotating.close} done={done} />}
        </SecretFlow>
      </Dialog>
    </>
  )
}
