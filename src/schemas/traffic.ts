// Traffic of projects and zones, in time buckets.
import { type TSchema, Type } from '@sinclair/typebox'
import { Body, Choice, Named, Nullable, Timestamp, TimestampInput } from './common.ts'

export const trafficSteps = ['minute', 'hour', 'day'] as const

/** Query types and response codes that are counted separately. */
export const questionTypes = [
  ...(['A', 'AAAA', 'CNAME', 'NS', 'SOA', 'MX', 'TXT', 'CAA', 'SRV'] as const),
  ...(['HTTPS', 'SVCB', 'DS', 'TLSA', 'ANY', 'other'] as const),
] as const
export const answerCodes = ['NOERROR', 'NXDOMAIN', 'SERVFAIL', 'other'] as const

const range = {
  from: Type.Optional({
    ...TimestampInput,
    description:
      `${TimestampInput.description}, taken back to the start of its step (UTC). ` +
      'Default: an hour, a day or 30 days before `to`, by step',
  }),
  to: Type.Optional({
    ...TimestampInput,
    description: `${TimestampInput.description}, taken on to the end of its step (UTC). Default: now`,
  }),
  step: Type.Optional(
    Choice(trafficSteps, {
      default: 'hour',
      description: 'Length of a bucket. Minutes are kept for two days, hours and days for 13 months',
    }),
  ),
}

export const TrafficQuery = Body({
  ...range,
  host: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'Only what was asked of this host' })),
})

export const TrafficRangeQuery = Body(range)

const answered = {
  from: Timestamp,
  to: Timestamp,
  step: Choice(trafficSteps, { description: 'Length of a bucket' }),
}

const count = (description?: string) => Type.Integer({ minimum: 0, ...(description && { description }) })
const milliseconds = () => Nullable(Type.Number({ description: 'null where there was no answer' }))

function counts<T extends string>(names: readonly T[]) {
  return Object.fromEntries(names.map((name) => [name, count()])) as Record<T, ReturnType<typeof count>>
}

export const TrafficStatus = Type.Object(
  {
    '1xx': count('WebSockets'),
    ...counts(['2xx', '3xx'] as const),
    '4xx': count('Also visitors who left before there was an answer'),
    '5xx': count(),
  },
  { $id: 'TrafficStatus', description: 'Answers by class of status' },
)

export const TrafficDuration = Type.Object(
  { mean: milliseconds(), p95: milliseconds() },
  {
    $id: 'TrafficDuration',
    description: 'Milliseconds until an answer began, WebSockets left out; p95 is estimated from a histogram',
  },
)

const traffic = {
  requests: count(),
  bytes: count('Of the bodies that were sent'),
  status: Named(TrafficStatus),
  durationMs: Named(TrafficDuration),
}

export const TrafficBucket = Type.Object(
  { at: Timestamp, ...traffic },
  { $id: 'TrafficBucket', description: 'What was asked in one step from `at` on' },
)

export const TrafficTotals = Type.Object(traffic, { $id: 'TrafficTotals', description: 'Of all buckets' })

export const TrafficHost = Type.Object(
  {
    host: Nullable(Type.String({ description: 'null: all hosts beyond those that are counted by themselves' })),
    requests: count(),
    bytes: count(),
  },
  { $id: 'TrafficHost', description: 'What was asked of one host' },
)

const emptyStatus = { '1xx': 0, '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 }
const example = {
  requests: 1_204,
  bytes: 18_204_551,
  status: { ...emptyStatus, '2xx': 1_150, '3xx': 41, '4xx': 13 },
  durationMs: { mean: 0.21, p95: 0.48 },
}
const exampleRange = { from: '2026-11-14T09:00:00.000Z', to: '2026-11-14T10:00:00.000Z', step: 'hour' }

const list = <T extends TSchema>(item: T, description: string) => Type.Array(Named(item), { description })

export const ProjectTraffic = Type.Object(
  {
    ...answered,
    buckets: list(TrafficBucket, 'Every step of the range, oldest first, also those without a request'),
    totals: Named(TrafficTotals),
    hosts: list(TrafficHost, 'Those with the most requests, 20 at most'),
  },
  {
    $id: 'ProjectTraffic',
    description: 'What was asked of a project',
    examples: [
      {
        ...exampleRange,
        buckets: [{ at: '2026-11-14T09:00:00.000Z', ...example }],
        totals: example,
        hosts: [{ host: 'docs.example.com', requests: 1_204, bytes: 18_204_551 }],
      },
    ],
  },
)

export const TrafficOfProject = Type.Object(
  {
    project: Type.String({ description: 'Name of the project' }),
    requests: count(),
    bytes: count('Of the bodies that were sent'),
    series: Type.Array(count(), { description: 'Requests of every step of the range, oldest first' }),
  },
  { $id: 'TrafficOfProject', description: 'What was asked of one project, in short' },
)

export const AccountTraffic = Type.Object(
  {
    ...answered,
    projects: list(TrafficOfProject, 'With the most requests first, also those without any; 1,000 at most'),
  },
  {
    $id: 'AccountTraffic',
    description: 'What was asked of the projects that the token sees',
    examples: [
      { ...exampleRange, projects: [{ project: 'docs', requests: 1_204, bytes: 18_204_551, series: [1_204] }] },
    ],
  },
)

export const QuestionTypes = Type.Object(counts(questionTypes), {
  $id: 'QuestionTypes',
  description: 'Questions by type',
})

export const AnswerCodes = Type.Object(counts(answerCodes), {
  $id: 'AnswerCodes',
  description: 'Questions by the code of their answer',
})

const dnsTraffic = {
  questions: count('That were answered'),
  types: Named(QuestionTypes),
  rcodes: Named(AnswerCodes),
}

export const DnsTrafficBucket = Type.Object(
  { at: Timestamp, ...dnsTraffic },
  { $id: 'DnsTrafficBucket', description: 'What was asked in one step from `at` on' },
)

export const DnsTrafficTotals = Type.Object(dnsTraffic, { $id: 'DnsTrafficTotals', description: 'Of all buckets' })

const zeros = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 0]))
const dnsExample = {
  questions: 310,
  types: { ...zeros(questionTypes), A: 200, AAAA: 100, MX: 10 },
  rcodes: { ...zeros(answerCodes), NOERROR: 300, NXDOMAIN: 10 },
}

export const DnsTraffic = Type.Object(
  {
    ...answered,
    buckets: list(DnsTrafficBucket, 'Every step of the range, oldest first, also those without a question'),
    totals: Named(DnsTrafficTotals),
  },
  {
    $id: 'DnsTraffic',
    description: 'What was asked of a zone',
    examples: [{ ...exampleRange, buckets: [{ at: '2026-11-14T09:00:00.000Z', ...dnsExample }], totals: dnsExample }],
  },
)
