// Suspends and resumes accounts, with everything that belongs to them, in one transaction.
import type { Static } from '@sinclair/typebox'
import type { Account } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { invalidField } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { ChangeAccount } from '../../schemas/operator.ts'
import { type AccountView, findAccount, viewAccount } from '../accounts/index.ts'
import { queueIssuesOf } from '../certificates/index.ts'
import { cancelBuildsOf } from '../deployments/index.ts'
import { append } from '../events/index.ts'
import { type Actor, actorName, lockAccount } from '../identity/index.ts'
import { wakeSendingOf } from '../webhooks/index.ts'

type Change = Static<typeof ChangeAccount>

export type AccountChange = {
  urls: Urls
  input: Change
  precondition: (view: AccountView) => void
}

/** The columns after the change. Omitted fields of an existing suspension keep their values. */
function columnsOf(before: Account, { suspended, dns, reason }: Change) {
  if (!suspended) return { suspendedAt: null, suspensionReason: null, refusesDns: false }
  return {
    suspendedAt: before.suspendedAt ?? new Date(),
    suspensionReason: reason ?? before.suspensionReason,
    refusesDns: dns === undefined ? before.refusesDns : dns === 'refuse',
  }
}

export function checkSuspension(actor: Actor, id: string, { suspended, dns, reason }: Sound<Change>): void {
  if (suspended && id === actor.accountId) {
    // The operator could not lift it again.
    throw invalidField('#/suspended', 'own_account', 'you cannot suspend your own account')
  }
  if (suspended !== false) return
  const detail = 'is only allowed when suspending'
  refuseFields([
    ...(dns === undefined ? [] : [badField('#/dns', 'not_allowed', detail)]),
    ...(reason === undefined ? [] : [badField('#/reason', 'not_allowed', detail)]),
  ])
}

/**
 * Suspends or resumes an account. Without a change, there is no event. The event makes every edge stop sites and
 * servers, and a trigger notifies the nameservers.
 */
export async function changeAccount(
  db: Db,
  actor: Actor,
  id: string,
  { urls, input, precondition }: AccountChange,
): Promise<AccountView> {
  return inTransaction(db, async (db) => {
    await lockAccount(db, { id })
    const before = await findAccount(db, id)
    precondition(viewAccount(before))
    checkSuspension(actor, id, input)
    const data = columnsOf(before, input)
    const isUnchanged = (Object.keys(data) as (keyof typeof data)[]).every((key) => data[key] === before[key])
    if (isUnchanged) return viewAccount(before)
    const after = await db.account.update({ where: { id }, data })
    const view = viewAccount(after)
    const event = { accountId: id, projectId: null, actor: actorName(actor), subject: id } as const
    const summary = { id, name: after.name }
    if (input.suspended) {
      await append(db, [{ ...event, type: 'account.suspended', data: { ...summary, suspension: view.suspension } }])
      await cancelBuildsOf(db, urls, id, actorName(actor))
    } else {
      await append(db, [{ ...event, type: 'account.resumed', data: summary }])
      // Run renewals and deliveries that became due during the suspension.
      await queueIssuesOf(db, id)
      await wakeSendingOf(db, id)
    }
    return view
  })
}
