// Settles disputes: the operator assigns a name to one of the accounts that claim it.
import type { Static } from '@sinclair/typebox'
import { enqueue } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { AssignDomain, OperatorDomain } from '../../schemas/operator-domains.ts'
import { type Actor, actorName } from '../identity/index.ts'
import { hostOf, nameInPath } from '../names/index.ts'
import { nextRecheckAt } from './check-schedule.ts'
import { findDomain, type ViewOptions, viewDomain } from './domains.ts'
import { checkNamesBelow, lockHost } from './statements.ts'
import { changeState } from './states.ts'

type Assignment = { path: string; input: Static<typeof AssignDomain> }

/**
 * Verifies the account's claim and ends all others to the name. Other accounts must prove names below it again if they
 * did so by nameservers, because that may have relied on this name.
 */
export async function assignDomain(
  db: Db,
  options: ViewOptions,
  actor: Actor,
  { path, input: { account: accountId, reason } }: Assignment,
): Promise<Static<typeof OperatorDomain>> {
  const name = nameInPath(path)
  return inTransaction(db, async (db) => {
    await lockHost(db, { host: hostOf(name) })
    const claim = await db.domain.findFirst({ where: { name, accountId }, include: { account: true } })
    if (!claim) throw new Fault('not_found', `The account ${accountId} has not added ${name}.`)
    const others = await db.domain.findMany({
      where: {
        accountId: { not: accountId },
        OR: [
          { name },
          // The proof of a wildcard is at this name too.
          { name: `*.${name}`, verified: true },
          { name: { endsWith: `.${name}` }, verified: true, method: 'nameservers' },
        ],
      },
      orderBy: { id: 'asc' },
      select: { id: true, name: true },
    })
    for (const other of others) await withdrawClaim(db, options, actor, { ...other, assigned: name, reason })
    await db.domainHold.deleteMany({ where: { name, accountId: { not: accountId } } })
    const now = new Date()
    const nextCheckAt = nextRecheckAt(now, 'missed')
    const made = await changeState(db, options, claim.id, {
      guard: { verified: false },
      data: {
        verified: true,
        verifiedAt: now,
        method: 'operator',
        misses: 0,
        missedAt: null,
        certificateFailures: 0,
        nextCheckAt,
        reason: null,
      },
      event: 'domain.verified',
      actor: actorName(actor),
    })
    if (made) {
      const { id } = claim
      await enqueue(db, { kind: 'issue', key: id, payload: { domainId: id } })
      await enqueue(db, { kind: 'verify', key: id, payload: { domainId: id }, runAt: nextCheckAt })
      await checkNamesBelow(db, { accountId, ending: `.${name}` })
    }
    const row = await findDomain(db, { ...actor, accountId, projectIds: null }, name)
    return { ...viewDomain(options, row), account: { id: accountId, name: claim.account.name } }
  })
}

type Withdrawal = { id: string; name: string; assigned: string; reason: string }

async function withdrawClaim(
  db: Db,
  options: ViewOptions,
  actor: Actor,
  { id, name, assigned, reason }: Withdrawal,
): Promise<void> {
  const now = new Date()
  const isBelow = name !== assigned
  const detail = `The operator of this platform has assigned ${assigned} to another account: ${reason}`
  await changeState(db, options, id, {
    // Only once, however often the name is assigned.
    guard: { OR: [{ verified: true }, { reason: null }, { reason: { not: detail } }] },
    data: {
      verified: false,
      verifiedAt: null,
      method: null,
      misses: 0,
      missedAt: null,
      checkingSince: now,
      ...(isBelow && { unprovedSince: now }),
      nextCheckAt: isBelow ? now : null,
      reason: detail,
    },
    event: 'domain.unverified',
    actor: actorName(actor),
  })
  if (isBelow) await enqueue(db, { kind: 'verify', key: id, payload: { domainId: id } })
}
