// Answers by idempotency key: kept for a day, so that a POST that is sent again gets the answer of the first.
import { deleteInBatches } from '../../platform/batches.ts'
import type { Db } from '../../platform/database/database.ts'
import { findAnswerRow, storeAnswerRow, tryLockKey } from './statements.ts'

export type StoredAnswer = {
  /** Of the request that was answered. */
  fingerprint: Uint8Array
  status: number
  location: string | null
  etag: string | null
  /** The body, sealed: it may hold a secret that was shown once. */
  sealed: Uint8Array
}

const keptMs = 24 * 60 * 60_000

/** Whether nobody else works on a request of this key; held by the transaction. */
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

export function forgetOldKeys(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { createdAt: { lt: new Date(Date.now() - keptMs) } }
  return deleteInBatches(signal, (limit) => db.idempotencyKey.deleteMany({ where, limit }))
}
