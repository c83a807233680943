// DNS records, and batches of changes.
import { Type } from '@sinclair/typebox'
import { Body, ListOf, ListQuery, Named, Nullable, Timestamp } from './common.ts'

export const dnsRecordTypes = [
  ...(['A', 'AAAA', 'ALIAS', 'CAA', 'CDNSKEY', 'CDS', 'CERT', 'CNAME', 'DNAME', 'DS', 'HINFO', 'HTTPS'] as const),
  ...(['LOC', 'MX', 'NAPTR', 'NS', 'OPENPGPKEY', 'PTR', 'SMIMEA', 'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT'] as const),
  'URI',
] as const

type RecordType = (typeof dnsRecordTypes)[number] | `TYPE${number}`

const typeName = {
  type: 'string',
  pattern: `^(?:${dnsRecordTypes.join('|')}|TYPE[0-9]{1,5})$`,
  description: `must be one of ${dnsRecordTypes.join(', ')}, or TYPE followed by the number of another type (RFC 3597)`,
} as const

export const DnsRecordType = Type.Unsafe<RecordType>({
  $id: 'DnsRecordType',
  ...typeName,
  examples: ['MX', 'TYPE65280'],
})

const example = {
  id: 'rec_01jcqk7d5n0hvt8w3mx2s6ra',
  domain: 'example.com',
  type: 'MX',
  name: '@',
  value: '10 mail.example.com',
  ttl: 300,
  createdAt: '2026-11-14T09:33:00.000Z',
  updatedAt: '2026-11-14T09:33:00.000Z',
  comment: null,
}

const recordFields = {
  id: Type.String({ description: 'rec_…' }),
  domain: Type.String(),
  type: Named(DnsRecordType),
  name: Type.String({ description: 'Relative to the domain, @ for the domain itself' }),
  value: Type.String({ description: 'Presentation format of the type, canonical' }),
  ttl: Type.Integer({ description: 'Seconds' }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  comment: Nullable(Type.String({ description: 'A note of yours; the DNS never shows it' })),
}

export const DnsRecord = Type.Object(recordFields, {
  $id: 'DnsRecord',
  description: 'One record of a zone',
  examples: [example],
})

export const PlannedDnsRecord = Type.Object(
  { ...recordFields, id: Nullable(Type.String({ description: 'rec_…; null in a dry run, which gives no ids' })) },
  { $id: 'PlannedDnsRecord', description: 'A record that was made, or would be', examples: [{ ...example, id: null }] },
)

const Name = Type.String({
  minLength: 1,
  maxLength: 1020,
  description: 'Relative to the domain, @ for the domain itself, or a full name that ends in the domain',
})
const Value = Type.String({
  minLength: 1,
  maxLength: 20_000,
  description: 'Presentation format of the type, such as 10 mail.example.com for MX',
})
const Ttl = Type.Integer({ minimum: 30, maximum: 86_400, default: 300, description: 'Seconds' })
const Comment = Nullable(
  Type.String({ maxLength: 200, pattern: '^\\P{Cc}*$', description: 'must be one line of at most 200 characters' }),
)
// A change keeps omitted fields, so it has no defaults.
const ChangedTtl = Type.Integer({ minimum: 30, maximum: 86_400, description: 'Seconds' })

const createFields = {
  type: DnsRecordType,
  name: Name,
  value: Value,
  ttl: Type.Optional(Ttl),
  comment: Type.Optional(Comment),
}

const changeFields = {
  name: Type.Optional(Name),
  value: Type.Optional(Value),
  ttl: Type.Optional(ChangedTtl),
  comment: Type.Optional(Comment),
}

export const CreateDnsRecord = Body(createFields, {
  $id: 'CreateDnsRecord',
  examples: [{ type: 'A', name: 'www', value: '192.0.2.10', ttl: 3600 }],
})

export const ChangeDnsRecord = Body(changeFields, {
  $id: 'ChangeDnsRecord',
  minProperties: 1,
  examples: [{ value: '192.0.2.11' }],
})

const DomainInPath = Type.String({ maxLength: 512, description: 'Name of the domain that hosts the records' })

export const ZoneParams = Type.Object({ domain: DomainInPath })
export const DnsRecordParams = Type.Object({ domain: DomainInPath, id: Type.String({ description: 'rec_…' }) })

export const DnsRecordList = ListOf('records', DnsRecord)

export const DnsRecordQuery = ListQuery({
  type: Type.Optional(Type.Unsafe<RecordType>(typeName)),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 1020, description: 'Records of this name only' })),
})

const wait = Type.Optional(
  Type.Literal('served', {
    description:
      'Hold the answer until both nameservers answer with the change, ten seconds at most; Zone-Served tells whether they do',
  }),
)

export const ServedQuery = Body({ wait })

export const DryRunQuery = Body({
  wait,
  dryRun: Type.Optional(Type.Boolean({ default: false, description: 'Tell what would change, and change nothing' })),
})

export const maxBatchSize = 1000

export const ChangeDnsRecordById = Body(
  { id: Type.String({ maxLength: 64 }), ...changeFields },
  { $id: 'ChangeDnsRecordById', minProperties: 2, description: 'Id of a record, and what changes about it' },
)

export const DnsBatch = Body(
  {
    delete: Type.Optional(
      Type.Array(Type.String({ maxLength: 64 }), { maxItems: maxBatchSize, description: 'Ids of records' }),
    ),
    update: Type.Optional(
      Type.Array(ChangeDnsRecordById, {
        maxItems: maxBatchSize,
        description: 'Ids of records, and what changes about each',
      }),
    ),
    create: Type.Optional(Type.Array(CreateDnsRecord, { maxItems: maxBatchSize })),
  },
  {
    $id: 'ChangeDnsRecords',
    minProperties: 1,
    description: `At most ${maxBatchSize} operations in all`,
    examples: [
      {
        delete: ['rec_01jcqk7d5n0hvt8w3mx2s6ra'],
        update: [{ id: 'rec_01jcqk7d5n0hvt8w3mx2s6rb', ttl: 60 }],
        create: [{ type: 'TXT', name: '@', value: 'v=spf1 -all' }],
      },
    ],
  },
)

export const DnsRecordUpdate = Type.Object(
  { before: Named(DnsRecord), after: Named(DnsRecord) },
  {
    $id: 'DnsRecordUpdate',
    description: 'A record before and after a change',
    examples: [{ before: example, after: { ...example, value: '20 mail.example.com' } }],
  },
)

const diffFields = {
  deleted: Type.Array(Named(DnsRecord)),
  updated: Type.Array(Named(DnsRecordUpdate)),
  created: Type.Array(Named(PlannedDnsRecord)),
}

export const DnsBatchResult = Type.Object(
  {
    dryRun: Type.Boolean(),
    ...diffFields,
    serial: Type.Integer({ description: 'Serial of the zone afterwards; a dry run leaves it as it is' }),
  },
  {
    $id: 'DnsBatchResult',
    description: 'What a batch changed, or would change',
    examples: [{ dryRun: true, deleted: [], updated: [], created: [{ ...example, id: null }], serial: 7 }],
  },
)
