// Events: the audit trail, the source of webhooks, and the live stream.
import { Type } from '@sinclair/typebox'
import { AnyOf, Choice, ListOf, ListQuery, Named, Nullable, Timestamp, timeQuery } from './common.ts'

export const eventTypes = [
  'deployment.created',
  'deployment.ready',
  'deployment.error',
  'deployment.canceled',
  'deployment.promoted',
  'deployment.deleted',
  'project.created',
  'project.updated',
  'project.deleted',
  'domain.created',
  'domain.verified',
  'domain.unverified',
  'domain.updated',
  'domain.moved',
  'domain.deleted',
  'domain.ssl.active',
  'domain.ssl.renewed',
  'domain.ssl.error',
  'domain.ssl.expired',
  'dns.record.created',
  'dns.record.updated',
  'dns.record.deleted',
  'dns.zone.imported',
  'ticket.created',
  'ticket.replied',
  'ticket.status_changed',
  'token.created',
  'token.updated',
  'token.revoked',
  'token.rotated',
  'webhook.disabled',
  'webhook.ping',
  'account.created',
  'account.limits_changed',
  'account.suspended',
  'account.resumed',
  'takedown.created',
  'takedown.ended',
] as const

export const AccountSummary = Type.Object(
  { id: Type.String({ description: 'acc_…' }), name: Type.String() },
  {
    $id: 'AccountSummary',
    description: 'An account, in short',
    examples: [{ id: 'acc_01jcqk5v8w0gk3xq4t7zc9me', name: 'demo' }],
  },
)

export const ImportedZone = Type.Object(
  {
    domain: Type.String(),
    created: Type.Integer(),
    updated: Type.Integer(),
    deleted: Type.Integer(),
    unchanged: Type.Integer(),
    serial: Type.Integer({ description: 'Serial of the zone afterwards' }),
  },
  {
    $id: 'ImportedZone',
    description: 'How many records an import changed, where they are too many for an event each',
    examples: [{ domain: 'example.com', created: 9000, updated: 0, deleted: 12, unchanged: 40, serial: 7 }],
  },
)

export const dnsDuringSuspension = ['serve', 'refuse'] as const

export const Suspension = Type.Object(
  {
    dns: Choice(dnsDuringSuspension, { description: 'refuse: the zones of the account are answered REFUSED' }),
    reason: Nullable(Type.String({ description: 'Read by the owner' })),
  },
  {
    $id: 'Suspension',
    description: 'How and why an account is suspended',
    examples: [{ dns: 'serve', reason: 'Unpaid since September' }],
  },
)

export const SuspendedAccount = Type.Object(
  { ...AccountSummary.properties, suspension: Named(Suspension) },
  {
    $id: 'SuspendedAccount',
    description: 'An account that is suspended from now on',
    examples: [{ id: 'acc_01jcqk5v8w0gk3xq4t7zc9me', name: 'demo', suspension: { dns: 'serve', reason: null } }],
  },
)

// The resource as the API shows it after the change. Its name tells its shape, so no reader has to guess. The first that
// fits is taken, so one with more fields comes before one with fewer.
const resources = [
  'Deployment',
  'Project',
  'Domain',
  'DnsRecord',
  'ImportedZone',
  'Ticket',
  'Token',
  'Webhook',
  'Takedown',
  'SuspendedAccount',
  'AccountSummary',
]

export const Event = Type.Object(
  {
    id: Type.String({ description: 'evt_…' }),
    type: Choice(eventTypes),
    createdAt: Timestamp,
    actor: Type.String({ description: 'Id of the token that made the change, or system' }),
    subject: Type.String({ description: 'Id of the resource, or the name of a domain' }),
    data: Type.Unsafe<object>({
      anyOf: resources.map((name) => Type.Ref(name)),
      description: 'The resource as it was after the change',
    }),
  },
  {
    $id: 'Event',
    description: 'Something that happened',
    examples: [
      {
        id: 'evt_01jcqk8c4p0gs16q0td7w3y2',
        type: 'account.created',
        createdAt: '2026-11-14T09:33:00.000Z',
        actor: 'system',
        subject: 'acc_01jcqk5v8w0gk3xq4t7zc9me',
        data: { id: 'acc_01jcqk5v8w0gk3xq4t7zc9me', name: 'demo' },
      },
    ],
  },
)

export const EventList = ListOf('events', Event)

/** Everything up to a dot of a type, and a star. */
const typePatterns = [
  ...new Set(eventTypes.flatMap((type) => [...type.matchAll(/\./g)].map(({ index }) => `${type.slice(0, index)}.*`))),
]

export const EventQuery = ListQuery({
  ...timeQuery,
  type: Type.Optional(
    AnyOf(Choice([...eventTypes, ...typePatterns]), 'Only events of these types, or prefixes such as deployment.*', 50),
  ),
  subject: Type.Optional(
    AnyOf(Type.String({ minLength: 1, maxLength: 300 }), 'Only events about these: ids, or names of domains'),
  ),
})
