// Whole zones: the zone file, the result of an import, and what the nameservers serve.
import { Type } from '@sinclair/typebox'
import { Body, Choice, Named, Nullable, Timestamp } from './common.ts'
import { DnsRecord, DnsRecordType, DnsRecordUpdate, DryRunQuery, PlannedDnsRecord } from './dns-records.ts'
import { LagError, SecondaryStatus } from './secondaries.ts'

export const maxListedChanges = 500

const skipReasons = [
  ...(['soa', 'apex_ns', 'out_of_zone', 'dnssec', 'duplicate', 'placeholder'] as const),
  ...(['unsupported_type', 'other_class', 'include'] as const),
] as const
const dialects = ['bind', 'cloudflare', 'godaddy', 'route53'] as const

const zoneFileExample = '$ORIGIN example.com.\n$TTL 300\nwww 3600 IN A 192.0.2.10\n'

export const ZoneFile = Type.String({
  $id: 'ZoneFile',
  minLength: 1,
  description: 'BIND zone file',
  examples: [zoneFileExample],
})

export const ZoneImportQuery = Body({
  ...DryRunQuery.properties,
  skipUnsupported: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Leave out lines with types or classes that are not supported, and `$INCLUDE`, instead of refusing the file',
    }),
  ),
})

export const ZoneChanges = Type.Object(
  {
    deleted: Type.Array(Named(DnsRecord)),
    updated: Type.Array(Named(DnsRecordUpdate)),
    created: Type.Array(Named(PlannedDnsRecord)),
  },
  { $id: 'ZoneChanges', description: 'The changed records themselves' },
)

export const SkippedLine = Type.Object(
  {
    line: Type.Integer(),
    text: Type.String(),
    reason: Choice(skipReasons, {
      description:
        '`soa`, `apex_ns` and `dnssec`: made by the service; `placeholder`: a page of the service that wrote the file; ' +
        '`unsupported_type`, `other_class` and `include`: only with `skipUnsupported`',
    }),
    detail: Type.String(),
  },
  { $id: 'SkippedLine', description: 'A line that is not imported' },
)

export const ReportedLines = Type.Object(
  {
    line: Type.Integer(),
    lastLine: Type.Integer(),
    result: Choice(['imported', 'changed', 'skipped'] as const),
    detail: Nullable(Type.String({ description: 'What was changed, or why it was skipped' })),
  },
  { $id: 'ReportedLines', description: 'What became of lines, those with the same result together' },
)

export const LineCounts = Type.Object(
  { imported: Type.Integer(), changed: Type.Integer(), skipped: Type.Integer() },
  { $id: 'LineCounts', description: 'How many lines were imported as written, with a change, and not at all' },
)

export const NotedLine = Type.Object(
  { line: Type.Integer(), detail: Type.String() },
  { $id: 'NotedLine', description: 'A line that was imported otherwise than written' },
)

export const HiddenRecord = Type.Object(
  {
    name: Type.String(),
    type: Named(DnsRecordType),
    value: Type.String(),
    delegation: Type.String({ description: 'Name whose NS records hide this one' }),
  },
  { $id: 'HiddenRecord', description: 'A record that resolvers never see' },
)

export const ZoneImport = Type.Object(
  {
    dryRun: Type.Boolean(),
    created: Type.Integer({ description: 'How many records are new' }),
    updated: Type.Integer({ description: 'How many got another ttl or comment' }),
    deleted: Type.Integer({ description: 'How many are not in the file' }),
    unchanged: Type.Integer({ description: 'How many stay as they are' }),
    changes: Named(ZoneChanges),
    dialect: Type.Unsafe<(typeof dialects)[number] | null>({
      type: ['string', 'null'],
      enum: [...dialects, null],
      description: 'Who wrote the file, as far as it shows',
    }),
    lineCounts: Named(LineCounts),
    lines: Type.Array(Named(ReportedLines), { description: 'What became of every line that is not empty' }),
    skipped: Type.Array(Named(SkippedLine), { description: 'Lines that are not imported' }),
    notes: Type.Array(Named(NotedLine), { description: 'Lines that were imported otherwise than written' }),
    hidden: Type.Array(Named(HiddenRecord), {
      description: 'Records that resolvers never see, because NS records above them delegate their names',
    }),
    truncated: Type.Boolean({
      description: `A list has more than ${maxListedChanges} items and shows the first of them; the counts are whole`,
    }),
    serial: Type.Integer({ description: 'Serial of the zone afterwards; a dry run leaves it as it is' }),
  },
  {
    $id: 'ZoneImport',
    description: 'What an import changed, or would change',
    examples: [
      {
        dryRun: true,
        created: 0,
        updated: 0,
        deleted: 0,
        unchanged: 12,
        changes: { deleted: [], updated: [], created: [] },
        dialect: null,
        lineCounts: { imported: 11, changed: 1, skipped: 1 },
        lines: [
          {
            line: 3,
            lastLine: 3,
            result: 'skipped',
            detail: 'The NS records of the domain itself are managed by the platform.',
          },
          { line: 4, lastLine: 14, result: 'imported', detail: null },
          { line: 15, lastLine: 15, result: 'changed', detail: 'The TTL 5 is outside 30-86400 seconds; 30 is used.' },
        ],
        skipped: [
          {
            line: 3,
            text: '@ IN NS ns1.old.example.',
            reason: 'apex_ns',
            detail: 'The NS records of the domain itself are managed by the platform.',
          },
        ],
        notes: [{ line: 15, detail: 'The TTL 5 is outside 30-86400 seconds; 30 is used.' }],
        hidden: [],
        truncated: false,
        serial: 7,
      },
    ],
  },
)

export const NameserverStatus = Type.Object(
  {
    name: Type.String(),
    address: Type.String({ description: 'Address and port that were asked' }),
    serial: Nullable(Type.Integer({ description: 'Serial that the nameserver serves; null when it did not tell' })),
    current: Type.Boolean({ description: 'Whether it serves the serial of the database' }),
    error: LagError,
    reason: Nullable(Type.String({ description: 'The same in words' })),
    since: Nullable({ ...Timestamp, description: 'Since when it lags; null where that is not known' }),
  },
  { $id: 'NameserverStatus', description: 'What one nameserver serves of a zone' },
)

export const ZoneStatus = Type.Object(
  {
    domain: Type.String(),
    serial: Type.Integer({ description: 'Serial of the zone in the database' }),
    nameservers: Type.Array(Named(NameserverStatus)),
    secondaries: Type.Array(Named(SecondaryStatus), {
      description:
        'Your own secondaries, by the keys of the zone that name them; empty for a token without the whole zone',
    }),
  },
  {
    $id: 'ZoneStatus',
    description: 'What each nameserver serves of a zone',
    examples: [
      {
        domain: 'example.com',
        serial: 7,
        nameservers: [
          {
            name: 'ns1.berth.test',
            address: '127.0.0.1:5300',
            serial: 7,
            current: true,
            error: null,
            reason: null,
            since: null,
          },
          {
            name: '192.0.2.53:53',
            address: '192.0.2.53:53',
            serial: 6,
            current: false,
            error: 'rejected',
            reason: 'It was sent the zone and does not serve it: it refuses something in it. Its log says what.',
            since: '2026-11-16T12:00:00.000Z',
          },
        ],
        secondaries: [
          {
            address: '198.51.100.53:53',
            serial: 7,
            behind: 0,
            current: true,
            error: null,
            reason: null,
            since: null,
            checkedAt: '2026-11-16T12:00:02.000Z',
          },
        ],
      },
    ],
  },
)
