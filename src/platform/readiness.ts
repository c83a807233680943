// Whether the database answers, asked on a connection of its own: a full pool or a locked table changes nothing.
import type { Check } from './health.ts'
import { Pool } from './pool.ts'

export type Readiness = { check: Check; close(): Promise<void> }

const connectMs = 2_000

export function openReadiness(url: string): Readiness {
  const pool = new Pool({ url, size: 1, class: 'readiness' }, { connectionTimeoutMillis: connectMs })
  return {
    check: () =>
      pool.query<{ transaction_read_only: string }>('SHOW transaction_read_only').then(
        // So is a standby, when the address of the database leads to one.
        ({ rows }) => (rows[0]?.transaction_read_only === 'off' ? null : 'The database takes no changes.'),
        () => 'The database does not answer.',
      ),
    close: () => pool.end(),
  }
}
