// What a domain's current nameservers have that its zone here lacks.
import { Type } from '@sinclair/typebox'
import { Named, Nullable } from './common.ts'
import { CreateDnsRecord, DnsRecordType } from './dns-records.ts'

export const DiscoveredChanges = Type.Object(
  { create: Type.Array(Named(CreateDnsRecord)) },
  {
    $id: 'DiscoveredChanges',
    description: 'The body of a batch that adds what the zone lacks',
    examples: [{ create: [{ type: 'MX', name: '@', value: '10 mail.example.com', ttl: 3600 }] }],
  },
)

export const DiscoveredConflict = Type.Object(
  {
    type: Named(DnsRecordType),
    name: Type.String(),
    value: Type.String(),
    ttl: Type.Integer(),
    reason: Type.String({ description: 'What stands in its way' }),
  },
  { $id: 'DiscoveredConflict', description: 'A record that cannot stand beside what the zone has' },
)

export const SkippedRecord = Type.Object(
  { name: Type.String(), type: Type.String(), reason: Type.String() },
  { $id: 'SkippedRecord', description: 'A record that was found and cannot be taken over' },
)

export const Discovery = Type.Object(
  {
    domain: Type.String(),
    nameservers: Type.Array(Type.String(), { description: 'The present nameservers of the domain' }),
    method: Type.Unsafe<'transfer' | 'questions' | null>({
      type: ['string', 'null'],
      enum: ['transfer', 'questions', null],
      description:
        'transfer: they gave the whole zone; questions: they were asked for names that zones commonly have, so there may ' +
        'be others; null: none was asked, and `reason` says why',
    }),
    questions: Type.Integer({ description: 'How many questions were asked' }),
    found: Type.Integer({ description: 'How many records were found' }),
    changes: Named(DiscoveredChanges),
    conflicts: Type.Array(Named(DiscoveredConflict)),
    skipped: Type.Array(Named(SkippedRecord)),
    truncated: Type.Boolean({ description: 'A list has more; apply the changes and discover again' }),
    notes: Type.Array(Type.String()),
    reason: Nullable(Type.String({ description: 'Why something is missing, or everything' })),
  },
  {
    $id: 'Discovery',
    description: 'What the present nameservers of a domain have that its zone here lacks',
    examples: [
      {
        domain: 'example.com',
        nameservers: ['ns1.old.example.net', 'ns2.old.example.net'],
        method: 'questions',
        questions: 412,
        found: 7,
        changes: { create: [{ type: 'MX', name: '@', value: '10 mail.example.com', ttl: 3600 }] },
        conflicts: [],
        skipped: [],
        truncated: false,
        notes: [],
        reason: null,
      },
    ],
  },
)
