// The limits and usage of accounts.
import type { Static } from '@sinclair/typebox'
import type { Account } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { AccountLimits, ChangeLimits } from '../../schemas/account.ts'
import { type Limits, withinCeilings } from '../../schemas/quotas.ts'
import { append } from '../events/index.ts'
import { type Actor, actorName, lockAccount } from '../identity/index.ts'
import { readShare } from './share.ts'
import { readMonthUsage } from './statements.ts'

export type LimitsView = Static<typeof AccountLimits>
export type UsageView = LimitsView['usage']

/** Counts members and pending invitations. */
export async function countMembers(db: Db, accountId: string): Promise<number> {
  const pending = { accountId, acceptedAt: null, expiresAt: { gt: new Date() } }
  return (await db.membership.count({ where: { accountId } })) + (await db.invitation.count({ where: pending }))
}

/** Reads counters that triggers maintain; records are the sum over the account's domains. */
export async function readUsage(db: Db, accountId: string): Promise<UsageView> {
  const [counters, zones, [month], members] = await Promise.all([
    db.accountUsage.groupBy({ by: ['name'], where: { accountId }, _sum: { used: true } }),
    db.domain.aggregate({ where: { accountId }, _sum: { recordCount: true, recordBytes: true } }),
    readMonthUsage(db, { accountId }),
    countMembers(db, accountId),
  ])
  const used = new Map(counters.map(({ name, _sum }) => [name, Number(_sum.used)]))
  const count = (name: string) => used.get(name) ?? 0
  return {
    projects: count('projects'),
    serverInstances: count('serverInstances'),
    deployments: count('deployments'),
    domains: count('domains'),
    claimsPerMonth: Number(month?.claims),
    records: zones._sum.recordCount ?? 0,
    recordBytes: Number(zones._sum.recordBytes ?? 0),
    dnsKeys: count('dnsKeys'),
    openTickets: count('openTickets'),
    messagesPerMonth: Number(month?.messages),
    tokens: count('tokens'),
    members,
    webhooks: count('webhooks'),
    buildsAtOnce: Number(month?.running),
    buildsQueued: count('buildsQueued'),
    buildMinutesPerMonth: Number(month?.minutes),
    storedBytes: count('storedBytes'),
  }
}

/** The platform's limits, overridden by those that an operator has set for the account. */
export function limitsOf(defaults: Limits, { limits }: Pick<Account, 'limits'>): Limits {
  return withinCeilings({ ...defaults, ...(limits as Partial<Limits>) })
}

export async function readAccount(db: Db, defaults: Limits, actor: Actor) {
  const { accountId, projectIds } = actor
  const [account, usage] = await Promise.all([
    db.account.findUniqueOrThrow({ where: { id: accountId } }),
    projectIds ? readShare(db, actor) : readUsage(db, accountId),
  ])
  const { id, name, createdAt } = account
  return { id, name, createdAt: createdAt.toISOString(), limits: limitsOf(defaults, account), usage }
}

async function viewLimits(db: Db, defaults: Limits, account: Account): Promise<LimitsView> {
  const changed = account.limits as Partial<Limits>
  return { limits: limitsOf(defaults, account), changed, usage: await readUsage(db, account.id) }
}

async function findAccount(db: Db, id: string): Promise<Account> {
  const account = await db.account.findUnique({ where: { id } })
  if (!account) throw new Fault('not_found', `There is no account ${id}.`)
  return account
}

/** Reads the limits of any account; only for operators. */
export async function readLimits(db: Db, defaults: Limits, accountId: string): Promise<LimitsView> {
  return viewLimits(db, defaults, await findAccount(db, accountId))
}

/** The precondition covers only the limits, because usage changes all the time. */
type LimitsChange = {
  accountId: string
  input: Static<typeof ChangeLimits>
  precondition(changed: unknown): void
}

/** Sets limits of any account; only for operators. Existing resources above a new limit stay. */
export async function changeLimits(
  db: Db,
  defaults: Limits,
  actor: Actor,
  { accountId, input, precondition }: LimitsChange,
): Promise<LimitsView> {
  return inTransaction(db, async (db) => {
    await lockAccount(db, { id: accountId })
    const before = await findAccount(db, accountId)
    precondition(before.limits)
    const merged = Object.entries({ ...(before.limits as object), ...input }).filter(([, max]) => max !== null)
    const limits = Object.fromEntries(merged)
    const account = await db.account.update({ where: { id: accountId }, data: { limits } })
    const event = { accountId, projectId: null, type: 'account.limits_changed', actor: actorName(actor) } as const
    await append(db, [{ ...event, subject: accountId, data: { id: accountId, name: account.name } }])
    return viewLimits(db, defaults, account)
  })
}
