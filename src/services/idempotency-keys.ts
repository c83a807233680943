// The end of idempotency keys: a day after they were used.
import { type Db, rows, sql } from '../db.ts'

export async function forgetOldKeys(db: Db): Promise<void> {
  await rows(db, sql`DELETE FROM idempotency_key WHERE created_at < now() - interval '24 hours' RETURNING key`)
}
