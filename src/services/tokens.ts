// API tokens: made, narrowed, rotated, revoked. A secret exists in the answer that made it and nowhere else.
import type { Scope } from '../actor.ts'
import type { Db } from '../db.ts'
import { newId } from '../ids.ts'
import { hashToken, newToken } from '../secrets.ts'

export type NewToken = {
  accountId: string
  name: string
  scopes: Scope[]
  projectIds: string[]
  expiresAt: Date | null
}

export async function insertToken(db: Db, token: NewToken) {
  const secret = newToken()
  const row = await db.token.create({
    data: {
      ...token,
      id: newId('tok'),
      prefix: secret.slice(0, 8),
      hash: Uint8Array.from(hashToken(secret)),
      createdAt: new Date(),
    },
  })
  return { secret, row }
}
