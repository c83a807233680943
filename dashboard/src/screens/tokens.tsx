// The tokens of the account, and one of them: what it may do, what ends with it, and how it is replaced.
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
import { describeScopes, heldScopes, ScopeTable } from './parts/scopes.tsx'
import { SecretOnce } from './parts/secret.tsx'
import { Access, NarrowToken, NewToken, RotateToken } from './parts/token-forms.tsx'
import { type NameOf, useNames, Who } from './parts/who.tsx'

export type Token = Schemas['Token']
type Secret = Schemas['TokenWithSecret']

export default function Tokens({ params }: { params: Params }) {
  return params.id ? <OneToken id={params.id} /> : <AllTokens />
}

const listTokens = () => call('get', '/tokens', { params: { query: { limit: 100 } } })

function AllTokens() {
  const list = useList(listTokens(), { on: ['token.*'] })
  const making = useDialog()
  const names = useNames()
  return (
    <>
      <ListPage
        title="Tokens"
        panel="In use"
        note="revoked and expired ones are not listed"
        make={{ text: 'New token', scope: 'tokens:write', open: making.open }}
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
          { name: 'May', cell: (token) => <Access of={token} /> },
          { name: 'Last used', wide: true, cell: ({ lastUsedAt }) => <Used at={lastUsedAt} /> },
          { name: 'Ends', cell: ({ expiresAt }) => <End at={expiresAt} /> },
          { name: 'Made by', wide: true, cell: (token) => <Maker of={token} names={names} /> },
        ]}
        empty={{
          title: 'No token yet',
          text: 'A token lets a build server, a script or the SDK use the API, with as little as it needs.',
        }}
      />
      <Dialog of={making} title="New token" wide>
        <Made of={making}>{(done) => <NewToken cancel={making.close} done={done} />}</Made>
      </Dialog>
    </>
  )
}

/** A form that makes a token, and then the secret of what it made. */
function Made({
  of,
  children,
}: {
  of: DialogState
  children: (done: (made: Secret) => void) => preact.ComponentChildren
}) {
  const [made, keep] = useState<Secret | null>(null)
  if (!made) return <>{children(keep)}</>
  return (
    <SecretOnce
      of={of}
      secret={made.secret}
      what="secret"
      curl={`curl ${location.origin}/api/tokens/current -H "Authorization: Bearer ${made.secret}"`}
    >
      <p>
        <State is="ready">{made.name}</State> may: {describeScopes(made.scopes)}
        {made.projects && ` of ${made.projects.join(', ')}`}. Try it with the line below.
      </p>
    </SecretOnce>
  )
}

const Used = ({ at }: { at: string | null }) => (at ? <Time at={at} /> : <span class="soft">never</span>)

const soonMs = 7 * 86_400_000

function End({ at }: { at: string | null }) {
  if (!at) return <span class="soft">never</span>
  if (Date.parse(at) - now.value > soonMs) return <Time at={at} form="date" />
  return (
    <State is="busy">
      <Time at={at} />
    </State>
  )
}

function Maker({ of, names }: { of: Token; names: NameOf }) {
  const by = of.createdBy ?? of.parentId
  return by ? <Who id={by} names={names} /> : <span class="soft">the command line</span>
}

function OneToken({ id }: { id: string }) {
  const when = ({ subject }: { subject: string }) => subject === id
  const token = useQuery(call('get', '/tokens/{id}', { params: { path: { id } } }), { on: ['token.*'], when })
  const list = useList(listTokens(), { on: ['token.*'] })
  const { data } = token
  const line = data ? lineOf(list.items ?? [], data) : []
  const names = useNames()
  useTitle(data?.name ?? 'Token')
  return (
    <>
      <Top title={data?.name ?? 'Token'} trail={<a href="/tokens">Tokens</a>}>
        {data && may('tokens:write') && <Actions token={data} line={line} />}
      </Top>
      <Panel title="Token" call={token.call} pad>
        <Loaded of={token}>
          {(it) => (
            <Facts
              rows={[
                ['Id', <code key="id">{it.id}</code>],
                ['Secret', <code key="secret">{it.prefix}…</code>],
                ['May', it.scopes.includes('*') ? 'everything, also what comes later' : describeScopes(it.scopes)],
                ['Projects', it.projects ? it.projects.join(', ') : 'all'],
                [
                  'Made',
                  <span key="made">
                    <Time at={it.createdAt} form="full" /> by <Maker of={it} names={names} />
                  </span>,
                ],
                ['Last used', <Used key="used" at={it.lastUsedAt} />],
                ['Ends', <End key="end" at={it.expiresAt} />],
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
        <Panel title="What it may do" call={token.call}>
          <ScopeTable label="Scopes of the token" of={[{ name: 'May', scopes: data.scopes }]} />
        </Panel>
      )}
      <Panel title="Revoked with it" call={list.call}>
        <Table
          label="Revoked with it"
          rows={line}
          keyOf={({ id: key }) => key}
          columns={[
            { name: 'Token', cell: (it) => <a href={`/tokens/${it.id}`}>{it.name}</a> },
            { name: 'May', cell: (it) => <Access of={it} /> },
            { name: 'Last used', cell: ({ lastUsedAt }) => <Used at={lastUsedAt} /> },
          ]}
          empty={<Empty title="None">A token can make others with the same access or less.</Empty>}
        />
      </Panel>
    </>
  )
}

/** What is revoked with a token: the others of its lineage, which has the id of its first, and what any of them created. */
function lineOf(all: readonly Token[], { id, lineage }: Token): Token[] {
  const line = new Set([lineage])
  // Those that are added come up as well.
  for (const one of line)
    for (const it of all) if ([it.lineage, it.parentId, it.creatorId].includes(one)) line.add(it.id)
  return all.filter((it) => it.id !== id && line.has(it.id))
}

function Actions({ token, line }: { token: Token; line: Token[] }) {
  const [renaming, rotating, narrowing] = [useDialog(), useDialog(), useDialog()]
  const { id, name } = token
  const path = { params: { path: { id } } }
  const held = heldScopes()
  const isOurs = held.includes('*') || token.scopes.every((scope) => held.includes(scope))
  if (!isOurs) return <span class="soft">It may do more than you: you cannot change it.</span>
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
        <p>Whatever uses it is refused within a second. This cannot be undone.</p>
        <p>
          {token.lastUsedAt ? (
            <>
              It was last used <Time at={token.lastUsedAt} />.
            </>
          ) : (
            'It was never used.'
          )}
        </p>
        {line.length > 0 && (
          <p>
            <State is="bad">{line.length === 1 ? 'One token ends' : `${line.length} tokens end`} with it</State>{' '}
            {line.map((it) => it.name).join(', ')}
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
        <Made of={{ ...rotating, close: () => go('/tokens') }}>
          {(done) => <RotateToken token={token} line={line} cancel={rotating.close} done={done} />}
        </Made>
      </Dialog>
    </>
  )
}
