// Events: the audit trail, the source of webhooks, and the live stream.
import { Type } from '@sinclair/typebox'
import { AnyOf, Choice, ListOf, ListQuery, Named, Nullable, Timestamp, timeQuery } from './common.ts'

/** Event types, grouped by the resource in their `data`, which shows it after the change. */
export const eventGroups = [
  {
    name: 'DeploymentEvent',
    data: 'Deployment',
    types: [
      'deployment.created',
      'deployment.ready',
      'deployment.error',
      'deployment.canceled',
      'deployment.promoted',
      'deployment.served',
      'deployment.deleted',
    ],
  },
  { name: 'ProjectEvent', data: 'Project', types: ['project.created', 'project.updated', 'project.deleted'] },
  { name: 'PushEvent', data: 'SkippedPush', types: ['push.skipped'] },
  { name: 'PullRequestEvent', data: 'PullRequest', types: ['pull_request.approved'] },
  {
    name: 'DomainEvent',
    data: 'Domain',
    types: [
      'domain.created',
      'domain.verified',
      'domain.unverified',
      'domain.updated',
      'domain.moved',
      'domain.deleted',
      'domain.ssl.active',
      'domain.ssl.renewed',
      'domain.ssl.error',
      'domain.ssl.failing',
      'domain.ssl.expired',
    ],
  },
  {
    name: 'DnsRecordEvent',
    data: 'DnsRecord',
    types: ['dns.record.created', 'dns.record.updated', 'dns.record.deleted'],
  },
  { name: 'ZoneEvent', data: 'ImportedZone', types: ['dns.zone.imported'] },
  { name: 'SecondaryEvent', data: 'SecondaryLag', types: ['dns.secondary.lagging', 'dns.secondary.current'] },
  {
    name: 'DnssecEvent',
    data: 'Dnssec',
    types: [
      'dns.dnssec.updated',
      'dns.dnssec.signing',
      'dns.dnssec.awaiting_ds',
      'dns.dnssec.active',
      'dns.dnssec.leaving',
      'dns.dnssec.unsigned',
      'dns.dnssec.rollover_started',
      'dns.dnssec.rollover_announced',
      'dns.dnssec.rollover_finished',
    ],
  },
  { name: 'DnsKeyEvent', data: 'DnsKey', types: ['dns.key.created', 'dns.key.deleted'] },
  { name: 'ZonePrimaryEvent', data: 'ZonePrimary', types: ['dns.primary.set', 'dns.primary.removed'] },
  { name: 'TicketEvent', data: 'Ticket', types: ['ticket.created', 'ticket.replied', 'ticket.status_changed'] },
  { name: 'TokenEvent', data: 'Token', types: ['token.created', 'token.updated', 'token.revoked', 'token.rotated'] },
  { name: 'MemberEvent', data: 'Member', types: ['member.joined', 'member.updated', 'member.removed'] },
  { name: 'InvitationEvent', data: 'Invitation', types: ['member.invited'] },
  { name: 'SessionEvent', data: 'SignedIn', types: ['session.created'] },
  { name: 'WebhookEvent', data: 'Webhook', types: ['webhook.disabled', 'webhook.ping'] },
  {
    name: 'AccountEvent',
    data: 'AccountSummary',
    types: ['account.created', 'account.limits_changed', 'account.resumed'],
  },
  { name: 'SuspensionEvent', data: 'SuspendedAccount', types: ['account.suspended'] },
  { name: 'TakedownEvent', data: 'Takedown', types: ['takedown.created', 'takedown.ended'] },
] as const

export const eventTypes = eventGroups.flatMap(({ types }) => [...types])

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
    skipped: Type.Integer({ description: 'How many lines of the file were not imported' }),
    serial: Type.Integer({ description: 'Serial of the zone afterwards' }),
  },
  {
    $id: 'ImportedZone',
    description: 'How many records an import changed; there is no event for each of them',
    examples: [{ domain: 'example.com', created: 9000, updated: 0, deleted: 12, unchanged: 40, skipped: 3, serial: 7 }],
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

const EventId = Type.String({ description: 'evt_…' })

/** One schema per group, so that an event's type determines the shape of its data. */
export const eventSchemas = eventGroups.map(({ name, data, types }) =>
  Type.Object(
    {
      id: EventId,
      type: Choice<EventType>(types),
      createdAt: Timestamp,
      actor: Type.String({
        description:
          'Id of the token that made the change (tok_…), of the person at the console (usr_…), of the key of a zone ' +
          '(key_…), of a deploy hook (dhk_…), or system',
      }),
      subject: Type.String({ description: 'Id of the resource, or the name of a domain' }),
      data: Type.Ref(data),
    },
    { $id: name, description: `Something that happened; \`data\` is the ${data} as it was after the change` },
  ),
)

type EventType = (typeof eventTypes)[number]
type AnyEvent = { id: string; type: EventType; createdAt: string; actor: string; subject: string; data: object }

const referenceTo = (name: string) => `#/components/schemas/${name}`

export const Event = Type.Unsafe<AnyEvent>({
  $id: 'Event',
  description: 'Something that happened; `type` tells which of these it is',
  oneOf: eventGroups.map(({ name }) => Type.Ref(name)),
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(
      eventGroups.flatMap(({ name, types }) => types.map((type) => [type, referenceTo(name)])),
    ),
  },
})

export const EventMessage = Type.Object(
  { id: EventId, event: Choice<EventType>(eventTypes), data: Named(Event) },
  { $id: 'EventMessage', description: 'A server-sent event: its id, its type, and the Event as JSON' },
)

export const EventList = ListOf('events', Event)

/** A type up to any of its dots, followed by a star. */
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
