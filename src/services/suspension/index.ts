// Suspension of an account: everything of it stops in one transaction, and comes back in another.
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

/** The columns after the change. What is left out of a suspension that stands stays as it is. */
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
    // Nobody would be left to lift it.
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
 * Suspends or resumes an account; nothing happens, and no event, if it is so already. The event tells every edge, which
 * stops sites and servers; the nameservers are told by a trigger.
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
    const same = (Object.keys(data) as (keyof typeof data)[]).every((key) => data[key] === before[key])
    if (same) return viewAccount(before)
    const after = await db.account.update({ where: { id }, data })
    const view = viewAccount(after)
    const event = { accountId: id, projectId: null, actor: actorName(actor), subject: id } as const
    const summary = { id, name: after.name }
    if (input.suspended) {
      await append(db, [{ ...event, type: 'account.suspended', data: { ...summary, suspension: view.suspension } }])
      await cancelBuildsOf(db, urls, id, actorName(actor))
    } else {
      await append(db, [{ ...event, type: 'account.resumed', data: summary }])
      // Renewals that were due meanwhile are made now, and so is what was to be sent.
      await queueIssuesOf(db, id)
      await wakeSendingOf(db, id)
    }
    return view
  })
}
