// Takedowns: hosts and projects that the operator has taken off the web.
import { Type } from '@sinclair/typebox'
import { Body, ListOf, ListQuery, Named, Nullable, Timestamp } from './common.ts'
import { AccountSummary } from './events.ts'

const example = {
  id: 'tkd_01jcqk9f6q0gt27r1ve8x4z3',
  host: 'login-example.com',
  project: 'prj_01jcqk5x2n0gm7yk3s6wa8qc',
  hosts: ['login-example.com'],
  reason: 'Phishing, reported by the owner of example.com (case 4711)',
  createdAt: '2026-11-16T09:40:00.000Z',
  endedAt: null,
}

export const Takedown = Type.Object(
  {
    id: Type.String({ description: 'tkd_…' }),
    host: Nullable(Type.String({ description: 'The host that is taken down; null for a whole project' })),
    project: Type.String({ description: 'prj_…: the project, or the one that showed the host when it was taken down' }),
    hosts: Type.Array(Type.String(), {
      description:
        'Names that stay taken down whoever claims them. Of a project these are the hosts that it had; all others that ' +
        'lead to it, those of its deployments included, are taken down with it',
    }),
    reason: Type.String({ description: 'Read by the owner' }),
    createdAt: Timestamp,
    endedAt: Nullable(Timestamp),
  },
  {
    $id: 'Takedown',
    description: 'A host or a project that an operator has taken from the web',
    examples: [example],
  },
)

export const OperatorTakedown = Type.Object(
  { ...Takedown.properties, account: Named(AccountSummary) },
  {
    $id: 'OperatorTakedown',
    description: 'A takedown and the account that was told of it',
    examples: [{ ...example, account: { id: 'acc_01jcqk4m1p0ga8z3w6x5n2dv', name: 'acme' } }],
  },
)

export const TakedownNotice = Type.Object(
  { reason: Type.String(), createdAt: Timestamp },
  {
    $id: 'TakedownNotice',
    description: 'Why and since when visitors get a neutral page instead of the site',
    examples: [{ reason: example.reason, createdAt: example.createdAt }],
  },
)

export const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  pattern: '\\S',
  description: 'must be 1 to 500 characters; shown to the owner',
})

export const CreateTakedown = Body(
  {
    host: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 254,
        description: 'Host of a project, of a deployment or of a domain; a wildcard takes along what it stands for',
      }),
    ),
    project: Type.Optional(
      Type.String({ pattern: '^prj_[0-9a-z]{24}$', description: 'must be the id of a project, prj_…' }),
    ),
    reason: Reason,
  },
  {
    $id: 'CreateTakedown',
    examples: [
      { host: example.host, reason: example.reason },
      { project: example.project, reason: 'Malware' },
    ],
  },
)

export const TakedownParams = Type.Object({ id: Type.String({ description: 'tkd_…' }) })

export const TakedownList = ListOf('takedowns', OperatorTakedown)

export const TakedownQuery = ListQuery({
  ended: Type.Optional(Type.Boolean({ description: 'Only those that have ended, or only those that stand' })),
})
