// Checks whether the database responds, on a separate connection, so that a full pool or locked table doesn't matter.

import { Pool } from '../database/pool.ts'
import type { Check } from './health.ts'

/** `check`: whether the database responds. `changes`: whether it accepts writes; without them, reads still work. */
export type Readiness = { check: Check; changes: Check; close(): Promise<void> }

const connectMs = 2_000

export function openReadiness(url: string): Readiness {
  const pool = new Pool({ url, size: 1, class: 'readiness' }, { connectionTimeoutMillis: connectMs })
  const mode = () => pool.query<{ transaction_read_only: string }>('SHOW transaction_read_only')
  const away = () => 'The database does not answer.'
  return {
    check: () => mode().then(() => null, away),
    // A standby accepts none, if the database URL leads to one.
    changes: () =>
      mode().then(
        ({ rows }) => (rows[0]?.transaction_read_only === 'off' ? null : 'The database takes no changes.'),
        away,
      ),
    close: () => pool.end(),
  }
}
