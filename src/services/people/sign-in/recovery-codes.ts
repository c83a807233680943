// Recovery codes: each signs in once in place of a one-time password. Stored are hashes; the codes are shown once.
import type { Db } from '../../../platform/database/database.ts'
import { randomLabel } from '../../../platform/ids.ts'
import { hashToken } from '../../../platform/secrets/secrets.ts'

const codes = 10
// 80 random bits, so that one plain hash is enough.
const length = 16

const hashOf = (userId: string, code: string) => Uint8Array.from(hashToken(`${userId} ${code}`))

/** New ones; those from before are void. */
export async function newRecoveryCodes(db: Db, userId: string): Promise<string[]> {
  const made = Array.from({ length: codes }, () => randomLabel(length))
  await db.recoveryCode.deleteMany({ where: { userId } })
  await db.recoveryCode.createMany({ data: made.map((code) => ({ userId, hash: hashOf(userId, code) })) })
  return made.map((code) => code.match(/.{4}/g)!.join('-'))
}

/** Whether it is one of the person's and was not used; it is now. */
export async function useRecoveryCode(db: Db, userId: string, typed: string): Promise<boolean> {
  const code = typed.toLowerCase().replace(/[\s-]/g, '')
  const where = { userId, hash: hashOf(userId, code), usedAt: null }
  return (await db.recoveryCode.updateMany({ where, data: { usedAt: new Date() } })).count === 1
}

export function countRecoveryCodes(db: Db, userId: string): Promise<number> {
  return db.recoveryCode.count({ where: { userId, usedAt: null } })
}
