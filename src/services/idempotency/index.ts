// Stores responses by idempotency key for a day, so that a repeated POST gets the response of the first.
import { deleteInBatches } from '../../platform/batches.ts'
import type { Db } from '../../platform/database/database.ts'
import { findAnswerRow, storeAnswerRow, tryLockKey } from './statements.ts'

export type StoredAnswer = {
  /** The fingerprint of the request. */
  fingerprint: Uint8Array
  status: number
  location: string | null
  etag: string | null
  /** The body, sealed because it may contain a secret that is shown only once. */
  sealed: Uint8Array
}

const retentionMs = 24 * 60 * 60_000

/** Locks the key until the transaction ends. Returns false if another request holds the lock. */
export async function lockKey(db: Db, tokenId: string, key: string): Promise<boolean> {
  const [lock] = await tryLockKey(db, { key: `${tokenId} ${key}` })
  return lock!.held
}

export async function findAnswer(db: Db, tokenId: string, key: string): Promise<StoredAnswer | null> {
  const [stored] = await findAnswerRow(db, { tokenId, key })
  return stored ?? null
}

export async function storeAnswer(db: Db, tokenId: string, key: string, answer: StoredAnswer): Promise<void> {
  await storeAnswerRow(db, { tokenId, key, ...answer })
}

export function deleteOldKeys(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { createdAt: { lt: new Date(Date.now() - retentionMs) } }
  return deleteInBatches(signal, (limit) => db.idempotencyKey.deleteMany({ where, limit }))
}
