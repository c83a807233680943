// The SQL lock for creating the internal CA.
import { statement, text } from '../../platform/database/statement.ts'

export const lockInternalCa = statement('internalCa.lock', {
  reason: 'advisory lock',
  in: {},
  out: { locked: text() },
  sql: () => `SELECT pg_advisory_xact_lock(hashtextextended('internal_ca', 0))::text AS locked`,
})
