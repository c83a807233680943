// The lock between backups and whatever removes files of deployments. A backup holds it shared for as long as it reads.
import { boolean, statement } from '../../../platform/database/statement.ts'

const key = `hashtextextended('berth artifacts', 0)`

/** Of the session; false if somebody has it. */
export const lockArtifacts = statement('deployments.lockArtifacts', {
  reason: 'lease',
  in: {},
  out: { locked: boolean() },
  sql: () => `SELECT pg_try_advisory_lock(${key}) AS locked`,
})

export const unlockArtifacts = statement('deployments.unlockArtifacts', {
  reason: 'lease',
  in: {},
  out: { unlocked: boolean() },
  sql: () => `SELECT pg_advisory_unlock(${key}) AS unlocked`,
})
