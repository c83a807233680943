// The caller's account, its limits and usage, and the regions of the platform.
import { Type } from '@sinclair/typebox'
import { Body, Named, Nullable, Timestamp, TimestampInput } from './common.ts'
import { type QuotaName, quotaNames, quotas } from './quotas.ts'

type Each<T> = Record<QuotaName, T>

function forEachQuota<T>(make: (name: QuotaName) => T): Each<T> {
  return Object.fromEntries(quotaNames.map((name) => [name, make(name)])) as Each<T>
}

const quotaExample = forEachQuota((name) => quotas[name].max)

const quotaFields = forEachQuota((name) => Type.Integer({ description: quotas[name].what }))

export const Quotas = Type.Object(quotaFields, { $id: 'Quotas', description: 'What the account may have' })

export const ChangedQuotas = Type.Partial(Type.Object(quotaFields), {
  $id: 'ChangedQuotas',
  description: 'Those that an operator set for this account',
})

const usageFields = {
  projects: Type.Integer(),
  serverInstances: Type.Integer({ description: 'That the projects ask for' }),
  deployments: Type.Integer(),
  domains: Type.Integer(),
  claimsPerMonth: Type.Integer({ description: 'Of this month (UTC)' }),
  records: Type.Integer({ description: 'Of all zones' }),
  recordBytes: Type.Integer({ description: 'Of all zones' }),
  dnsKeys: Type.Integer({ description: 'Of all zones' }),
  openTickets: Type.Integer(),
  messagesPerMonth: Type.Integer({ description: 'To support, of this month (UTC)' }),
  tokens: Type.Integer(),
  members: Type.Integer({ description: 'And invitations that are open' }),
  webhooks: Type.Integer(),
  buildsAtOnce: Type.Integer({ description: 'Builds that run now' }),
  buildsQueued: Type.Integer({ description: 'Deployments that wait for their build' }),
  buildMinutesPerMonth: Type.Integer({ description: 'Of this month (UTC)' }),
  storedBytes: Type.Integer({ description: 'Of all deployments' }),
}

export const QuotaUsage = Type.Object(usageFields, { $id: 'QuotaUsage', description: 'What the account uses' })

const ofAccount = () =>
  Nullable(Type.Integer({ description: 'null for a token narrowed to projects: it belongs to the whole account' }))

/** As the calling token sees it: one narrowed to projects sees their share. */
export const Usage = Type.Object(
  {
    ...usageFields,
    claimsPerMonth: ofAccount(),
    openTickets: ofAccount(),
    messagesPerMonth: ofAccount(),
    tokens: ofAccount(),
    members: ofAccount(),
    webhooks: ofAccount(),
    buildsAtOnce: ofAccount(),
    buildsQueued: ofAccount(),
    buildMinutesPerMonth: ofAccount(),
    waits: Type.Integer({ description: 'At all servers' }),
    streams: Type.Integer({ description: 'At all servers' }),
  },
  { $id: 'Usage', description: 'What the account uses, as the calling token sees it' },
)

export const Limits = Type.Object(
  {
    requestsPerMinute: Type.Integer({ description: 'Per token' }),
    accountRequestsPerMinute: Type.Integer({ description: 'All tokens of the account together' }),
    requestsAtOnce: Type.Integer({ description: 'Requests of the account that are open at once at one server' }),
    bodyBytes: Type.Integer(),
    zoneImportBytes: Type.Integer(),
    ...quotaFields,
  },
  { $id: 'Limits', description: 'What the account may have, and how much it may ask' },
)

const usageExample = {
  projects: 1,
  serverInstances: 0,
  deployments: 3,
  domains: 1,
  claimsPerMonth: 1,
  records: 4,
  recordBytes: 63,
  dnsKeys: 0,
  openTickets: 0,
  messagesPerMonth: 2,
  tokens: 1,
  members: 2,
  webhooks: 0,
  buildsAtOnce: 0,
  buildsQueued: 0,
  buildMinutesPerMonth: 12,
  storedBytes: 182_044,
}

export const Account = Type.Object(
  {
    id: Type.String({ description: 'acc_…' }),
    name: Type.String(),
    createdAt: Timestamp,
    limits: Named(Limits),
    usage: Named(Usage),
  },
  {
    $id: 'Account',
    description: 'The account of the calling token, its limits and what it uses',
    examples: [
      {
        id: 'acc_01jcqk5v8w0gk3xq4t7zc9me',
        name: 'demo',
        createdAt: '2026-11-14T09:29:00.000Z',
        limits: {
          requestsPerMinute: 600,
          accountRequestsPerMinute: 1800,
          requestsAtOnce: 100,
          bodyBytes: 65536,
          zoneImportBytes: 16777216,
          ...quotaExample,
        },
        usage: { ...usageExample, waits: 0, streams: 1 },
      },
    ],
  },
)

export const MonthUsageQuery = Body({
  from: Type.Optional({
    ...TimestampInput,
    description:
      `${TimestampInput.description}, taken back to the start of its month (UTC). ` +
      'Default: 12 months before the end of that of `to`',
  }),
  to: Type.Optional({
    ...TimestampInput,
    description: `${TimestampInput.description}, taken on to the end of its month (UTC). Default: now`,
  }),
})

export const MonthUsage = Type.Object(
  {
    month: Type.String({ description: 'YYYY-MM' }),
    buildMinutes: Type.Integer({ description: 'Of the builds that ended in it' }),
    storedBytes: Nullable(Type.Integer({ description: 'The most that was stored at once; null if it was not noted' })),
  },
  { $id: 'MonthUsage', description: 'What the account used in a month (UTC)' },
)

export const AccountUsage = Type.Object(
  {
    from: Timestamp,
    to: Timestamp,
    months: Type.Array(Named(MonthUsage), { description: 'Every month of the range, oldest first' }),
  },
  {
    $id: 'AccountUsage',
    description: 'What the account used, by month',
    examples: [
      {
        from: '2026-11-01T00:00:00.000Z',
        to: '2026-12-01T00:00:00.000Z',
        months: [{ month: '2026-11', buildMinutes: 12, storedBytes: 182_044 }],
      },
    ],
  },
)

export const AccountLimits = Type.Object(
  {
    limits: Named(Quotas),
    changed: Named(ChangedQuotas),
    usage: Named(QuotaUsage),
  },
  {
    $id: 'AccountLimits',
    description: 'The quotas of an account and what it uses',
    examples: [{ limits: { ...quotaExample, projects: 500 }, changed: { projects: 500 }, usage: usageExample }],
  },
)

export const ChangeLimits = Body(
  forEachQuota((name) =>
    Type.Optional(
      Type.Unsafe<number | null>({
        type: ['integer', 'null'],
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: `${quotas[name].what}; null for the platform’s own limit`,
      }),
    ),
  ),
  { $id: 'ChangeAccountLimits', minProperties: 1, examples: [{ projects: 500, domains: null }] },
)

export const Region = Type.Object(
  { id: Type.String(), default: Type.Boolean({ description: 'Where a new project goes' }) },
  { $id: 'Region', description: 'A place where projects are built and served' },
)

export const Regions = Type.Object(
  { regions: Type.Array(Named(Region)) },
  {
    $id: 'Regions',
    description: 'Where projects are built and served',
    examples: [{ regions: [{ id: 'local-1', default: true }] }],
  },
)
