// Recovery codes: each replaces a one-time password once. We store hashes and show the codes once.
import type { Db } from '../../../platform/database/database.ts'
import { randomLabel } from '../../../platform/ids.ts'
import { hashToken } from '../../../platform/secrets/secrets.ts'

const codeCount = 10
// 80 random bits, so a plain hash is enough.
const codeLength = 16

const hashOf = (userId: string, code: string) => Uint8Array.from(hashToken(`${userId} ${code}`))

/** Creates new codes and deletes the old ones. */
export async function newRecoveryCodes(db: Db, userId: string): Promise<string[]> {
  const codes = Array.from({ length: codeCount }, () => randomLabel(codeLength))
  await db.recoveryCode.deleteMany({ where: { userId } })
  await db.recoveryCode.createMany({ data: codes.map((code) => ({ userId, hash: hashOf(userId, code) })) })
  return codes.map((code) => code.match(/.{4}/g)!.join('-'))
}

/** Marks one of the person's unused codes as used. Returns false if there is no such code. */
export async function useRecoveryCode(db: Db, userId: string, typed: string): Promise<boolean> {
  const code = typed.toLowerCase().replace(/[\s-]/g, '')
  const where = { userId, hash: hashOf(userId, code), usedAt: null }
  return (await db.recoveryCode.updateMany({ where, data: { usedAt: new Date() } })).count === 1
}

export function countRecoveryCodes(db: Db, userId: string): Promise<number> {
  return db.recoveryCode.count({ where: { userId, usedAt: null } })
}
