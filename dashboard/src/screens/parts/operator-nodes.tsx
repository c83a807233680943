// The nodes of the installation: their state and load, and draining one.
import {
  bytes,
  call,
  Empty,
  ListTable,
  num,
  Panel,
  type Schemas,
  State,
  Time,
  type Tone,
  toast,
  useDialog,
  useList,
} from '../../kit/index.ts'
import { Ask } from './ask.tsx'
import { Refresh } from './refresh.tsx'

type Node = Schemas['Node']

const states: Record<Node['state'], [Tone, string]> = {
  ACTIVE: ['ready', 'Active'],
  DRAINING: ['busy', 'Draining'],
  LOST: ['bad', 'Lost'],
}

export function Nodes() {
  const list = useList(call('get', '/operator/nodes', { params: { query: { limit: 100 } } }))
  return (
    <Panel title="Nodes" call={list.call} actions={<Refresh of={list} />}>
      <ListTable
        label="Nodes"
        of={list}
        keyOf={(it: Node) => it.id}
        columns={[
          {
            name: 'Node',
            cell: ({ name, id, roles }) => (
              <>
                <b>{name}</b> <span class="soft">{roles.join(', ')}</span>
                <div class="soft">
                  <code>{id}</code>
                </div>
              </>
            ),
          },
          {
            name: 'State',
            cell: ({ state, heartbeatAt }) => (
              <>
                <State is={states[state][0]}>{states[state][1]}</State>
                <div class="soft">
                  <Time at={heartbeatAt} />
                </div>
              </>
            ),
          },
          {
            name: 'Load',
            wide: true,
            cell: ({ load }) => (
              <span class="figure">
                {num(load.cpu)} CPU, {bytes(load.memoryBytes)}
                <div class="soft">
                  {Object.entries(load.work)
                    .map(([what, count]) => `${num(count)} ${what}`)
                    .join(', ')}
                </div>
              </span>
            ),
          },
          { name: 'Version', wide: true, cell: ({ version }) => version },
          { name: 'Started', wide: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
          {
            name: 'Actions',
            actions: true,
            cell: (it) => it.state !== 'LOST' && <Drain of={it} done={list.refetch} />,
          },
        ]}
        empty={<Empty title="No nodes" />}
      />
    </Panel>
  )
}

function Drain({ of: { id, name, state }, done }: { of: Node; done(): void }) {
  const confirming = useDialog()
  const draining = state !== 'DRAINING'
  const verb = draining ? 'Drain' : 'Resume'
  return (
    <>
      <button type="button" class="quiet" aria-label={`${verb}: ${name} ${id}`} onClick={confirming.open}>
        {verb}
      </button>
      <Ask
        of={confirming}
        title={draining ? `Drain ${name}?` : `Resume ${name}?`}
        action={verb}
        call={call('patch', '/operator/nodes/{id}', { params: { path: { id } }, body: { draining } })}
        done={() => {
          toast(draining ? 'Draining.' : 'Resumed.')
          done()
        }}
      >
        {draining ? (
          <p>It keeps serving but takes no new jobs, webhooks or servers. A restart ends the drain.</p>
        ) : (
          <p>It takes new jobs, webhooks and servers again.</p>
        )}
      </Ask>
    </>
  )
}
