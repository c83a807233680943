// Rotates tokens: a new one takes the place of an old one, with the same rights.
import type { Token } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { invalidField } from '../../platform/errors.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, partsIn, type Scope } from '../identity/index.ts'
import { decideTwice, lineageOf, requireRights, requireTime, successionOf, withRights } from './lineage.ts'
import { endLine } from './revocation.ts'
import { selectLine } from './statements.ts'
import { findRow, findToken, insertToken, newTokenId, type TokenWithSecret } from './tokens.ts'

export type Rotation = { overlapSeconds?: number; revokeChildren?: boolean }

/** The old secret works on for the overlap. The new token expires when the old one would have. */
export async function rotateToken(
  db: Db,
  actor: Actor,
  id: string,
  { overlapSeconds = 0, revokeChildren = false }: Rotation,
): Promise<TokenWithSecret> {
  return inTransaction(db, async (db) => {
    const { caller, rotator, old } = await decideTwice(db, actor, async (caller) => {
      const rotator = withRights(actor, caller)
      const old = await findRow(db, actor, id)
      requireRights(rotator, old, 'rotate')
      requireTime(caller, old)
      return { caller, rotator, old }
    })
    const line = await selectLine(db, { id })
    if (revokeChildren) {
      const others = line.filter((one) => one.id !== id)
      if (others.some((one) => one.id === caller.id)) throw wouldEnd()
      for (const one of others) requireRights(rotator, one, 'revoke')
    }
    const { parentId, childrenOf, lineageId } = await successionOf(db, caller, old, line)
    const { accountId, name, projectIds, expiresAt } = old
    const scopes = old.scopes as Scope[]
    const { userId } = childrenOf === 'new' ? old : caller
    const bounds = { accountId, name, scopes, projectIds, zoneParts: partsIn(old), expiresAt, parentId, userId }
    if (revokeChildren) await endLine(db, actor, { id, itself: false })
    const ends = new Date(Date.now() + overlapSeconds * 1000)
    // With an overlap the old one expires later; without, it is revoked now.
    const change =
      overlapSeconds === 0 ? { revokedAt: ends } : { expiresAt: expiresAt && expiresAt < ends ? expiresAt : ends }
    const newId = newTokenId()
    // Before the new one is inserted, so that an account at its quota of tokens can still rotate one.
    await db.token.update({ where: { id }, data: { ...change, replacedById: newId } })
    const origin = { creatorId: await creatorOf(db, caller, lineageId), lineageId, replacesId: id }
    const { secret } = await insertToken(db, { id: newId, ...bounds, ...origin })
    const heir = childrenOf === 'new' ? newId : old.parentId
    await db.token.updateMany({ where: { parentId: id, id: { not: newId } }, data: { parentId: heir } })
    const created = await findToken(db, actor, newId)
    await append(db, [eventOf(actor, 'token.rotated', { subject: id, projectId: null, data: created })])
    return { ...created, secret, token: secret }
  })
}

/**
 * When a token rotates itself again and again, the first one is the creator of all: those between can be forgotten, and
 * revoking the first one still ends the last.
 */
async function creatorOf(db: Db, caller: Token, lineageId: string | null): Promise<string> {
  if (caller.creatorId === null || lineageId !== lineageOf(caller)) return caller.id
  const creator = await db.token.findUnique({ where: { id: caller.creatorId } })
  return creator && lineageOf(creator) === lineageId ? creator.id : caller.id
}

/** The caller would get the secret of a token that ends with it. */
function wouldEnd() {
  return invalidField(
    '#/revokeChildren',
    'revokes_caller',
    'would revoke the calling token, which descends from this one',
  )
}
