// Nodes: the processes of the installation, as the operator sees them.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Named, Nullable, Timestamp } from './common.ts'

export const nodeStates = ['ACTIVE', 'DRAINING', 'LOST'] as const

export const NodeLoad = Type.Object(
  {
    cpu: Type.Number({ description: 'Processors used on average since the heartbeat before' }),
    memoryBytes: Type.Integer(),
    work: Type.Record(Type.String(), Type.Integer(), {
      description: 'What is under way: `jobs` of a worker, `servers` of a runner, `requests` of an API',
    }),
  },
  { $id: 'NodeLoad', description: 'What a process does at its last heartbeat' },
)

export const Node = Type.Object(
  {
    id: Type.String({ description: 'nod_…, new at every start of the process' }),
    name: Type.String({ description: 'That of the machine, or NODE_NAME' }),
    roles: Type.Array(Type.String()),
    version: Type.String(),
    address: Nullable(Type.String({ description: 'NODE_ADDRESS, if it is set' })),
    state: Choice(nodeStates, {
      description:
        'DRAINING: it serves on, but is not ready and takes no new work, because it stops or was asked to. LOST: not ' +
        'heard of for 18 s; it is shown for a day, or until the same roles start again under its name',
    }),
    load: Named(NodeLoad),
    startedAt: Timestamp,
    heartbeatAt: Timestamp,
  },
  {
    $id: 'Node',
    description: 'A process of the installation',
    examples: [
      {
        id: 'nod_01jcqk9f6q0gt27r1ve8x4z3',
        name: 'web-1',
        roles: ['edge'],
        version: '0.1.0',
        address: '10.0.0.11',
        state: 'ACTIVE',
        load: { cpu: 0.35, memoryBytes: 148_000_000, work: {} },
        startedAt: '2026-11-16T09:00:00.000Z',
        heartbeatAt: '2026-11-16T09:40:00.000Z',
      },
    ],
  },
)

export const NodeList = ListOf('nodes', Node)

export const ChangeNode = Body(
  {
    draining: Type.Boolean({ description: 'It serves on, but takes no new work; false: it takes work again' }),
  },
  { $id: 'ChangeNode', examples: [{ draining: true }] },
)

export const NodeParams = Type.Object({ id: Type.String({ description: 'nod_…' }) })

export const NodeQuery = ListQuery({})
