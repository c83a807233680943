// Whether the database answers, asked on a connection of its own: a full pool or a locked table changes nothing.

import { Pool } from '../database/pool.ts'
import type { Check } from './health.ts'

/** `check`: the database answers; `changes`: it takes changes too. Without those, reads are still answered. */
export type Readiness = { check: Check; changes: Check; close(): Promise<void> }

const connectMs = 2_000

export function openReadiness(url: string): Readiness {
  const pool = new Pool({ url, size: 1, class: 'readiness' }, { connectionTimeoutMillis: connectMs })
  const mode = () => pool.query<{ transaction_read_only: string }>('SHOW transaction_read_only')
  const away = () => 'The database does not answer.'
  return {
    check: () => mode().then(() => null, away),
    // A standby takes none, when the address of the database leads to one.
    changes: () =>
      mode().then(
        ({ rows }) => (rows[0]?.transaction_read_only === 'off' ? null : 'The database takes no changes.'),
        away,
      ),
    close: () => pool.end(),
  }
}
