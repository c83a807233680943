// Ways to sign in, in SQL.
import { statement, text } from '../../platform/database/statement.ts'

/** Whoever changes the ways in which a person signs in takes turns, so that one is left; until the transaction ends. */
export const lockUser = statement('people.lock_user', {
  reason: 'row lock',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM users WHERE id = ${p.id} FOR NO KEY UPDATE`,
})
