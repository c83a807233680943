// SQL statements of sign-in.
import { statement, text } from '../../platform/database/statement.ts'

/** Locks a person until the transaction ends, so concurrent changes can't remove their last sign-in method. */
export const lockUser = statement('people.lock_user', {
  reason: 'row lock',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM users WHERE id = ${p.id} FOR NO KEY UPDATE`,
})
