// The processes of the installation, and the jobs that were given up.
import {
  bytes,
  Copy,
  CopyLine,
  call,
  Empty,
  ListTable,
  num,
  Panel,
  type Schemas,
  State,
  Time,
  type Tone,
  useList,
} from '../../kit/index.ts'
import { ReadAgain } from './read-again.tsx'

type Node = Schemas['Node']

const states: Record<Node['state'], [Tone, string]> = {
  ACTIVE: ['ready', 'Active'],
  DRAINING: ['busy', 'Draining'],
  LOST: ['bad', 'Lost'],
}

/** The API does not drain: the operator does, on the server. */
const Command = ({ text }: { text: string }) => (
  <span class="copy">
    <code>{text.split(' ', 2).join(' ')} …</code>
    <Copy text={text} what="command" />
  </span>
)

export function Nodes() {
  const list = useList(call('get', '/operator/nodes', { params: { query: { limit: 100 } } }))
  return (
    <Panel title="Processes" call={list.call} actions={<ReadAgain of={list} />}>
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
                {num(load.cpu)} cpu, {bytes(load.memoryBytes)}
                <div class="soft">
                  {Object.entries(load.work)
                    .map(([what, count]) => `${num(count)} ${what}`)
                    .join(', ')}
                </div>
              </span>
            ),
          },
          { name: 'Version', wide: true, cell: ({ version }) => version },
          {
            name: 'Command',
            wide: true,
            cell: ({ id, state }) =>
              state !== 'LOST' && <Command text={`berth ${state === 'DRAINING' ? 'undrain' : 'drain'} ${id}`} />,
          },
          { name: 'Started', wide: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
        ]}
        empty={<Empty title="No node" />}
      />
    </Panel>
  )
}

const commands = ['berth jobs list', 'berth jobs retry all', 'berth jobs discard all']

export function Jobs() {
  return (
    <Panel title="Jobs that were given up" note="on the server">
      <Empty title="The API has no list of jobs yet">
        <p>On the machine of the server, also beside a running one:</p>
        {commands.map((command) => (
          <CopyLine key={command} text={command} what="command" />
        ))}
      </Empty>
    </Panel>
  )
}
