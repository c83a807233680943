// How many waits and streams an account may have open.
import type { Database } from '../../../platform/database/database.ts'
import type { Actor } from '../../../services/identity/index.ts'
import { limitOf } from '../../../services/quotas/index.ts'

export type Allowance = (actor: Actor, name: 'waits' | 'streams') => number | Promise<number>

/** Read each time: waits and streams query the database anyway, and a change by the operator applies at once. */
export function createAllowance(db: Database): Allowance {
  return ({ accountId }, name) => limitOf(db, accountId, name)
}
