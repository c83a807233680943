// How tokens descend from each other: a child has no right and no time that its parent has not, and ends with it.
import type { Token } from '../../generated/client.ts'
import type { Db } from '../../platform/database.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { lockAccount } from '../accounts/statements.ts'
import { type Actor, allows, type Scope } from './actor.ts'
import { selectAncestors } from './statements.ts'
import { isCovered, partsIn } from './zone-parts.ts'

/**
 * The row of the calling token, if it is still accepted; for that of a console, the row of the membership: what a person
 * makes at a console stays when the console's token ends, and goes with the membership. The tokens of an account are made, rotated and revoked one
 * after another: a child that was made while its parent is revoked would be left.
 */
export async function lockCaller(db: Db, { accountId, tokenId }: Actor): Promise<Token> {
  await lockAccount(db, { id: accountId })
  const caller = await db.token.findFirst({ where: { id: tokenId, accountId }, include: { parent: true } })
  if (!caller) throw new Fault('invalid_token')
  if (caller.revokedAt) throw new Fault('token_revoked')
  if (caller.expiresAt && caller.expiresAt.getTime() <= Date.now()) throw new Fault('token_expired')
  return caller.sessionId === null ? caller : caller.parent!
}

/** The actor with the rights that its token has now: it may have been narrowed since the request came. */
export function withRights(actor: Actor, token: Token, needed: Scope = 'tokens:write'): Actor {
  const { scopes, projectIds } = token
  const narrowed = { projectIds: projectIds.length > 0 ? projectIds : null, zoneParts: partsIn(token) }
  const now = { ...actor, scopes: scopes as Scope[], ...narrowed }
  requireScopes(now, [needed], `change ${needed.split(':', 1)}`)
  return now
}

// `*` may grant every scope of the account; the operator's own is granted by those who hold it.
export function grants(held: readonly Scope[], wanted: Scope): boolean {
  return wanted === '*' ? held.includes('*') : allows(held, wanted)
}

/** Throws if the actor lacks one of the scopes; `deed` is what it wants to do. */
export function requireScopes(actor: Actor, scopes: readonly Scope[], deed: string): void {
  const missing = scopes.find((scope) => !grants(actor.scopes, scope))
  if (missing === undefined) return
  const detail = `The calling token does not have ${missing}, so it cannot ${deed}.`
  throw new Fault('insufficient_scope', detail, { requiredScope: missing })
}

/** Throws unless the actor has every right of the token that it wants to end or replace. */
export function requireRights(actor: Actor, token: Token, verb: 'revoke' | 'rotate' | 'change'): void {
  const { projectIds, zoneParts = null } = actor
  const parts = partsIn(token)
  const wider =
    (projectIds && (token.projectIds.length === 0 || token.projectIds.some((id) => !projectIds.includes(id)))) ||
    (zoneParts && (!parts || parts.some((part) => !isCovered(part, zoneParts))))
  // As everything outside what a token is narrowed to.
  if (wider) throw new Fault('not_found', `There is no token ${token.id}.`)
  requireScopes(actor, token.scopes as Scope[], `${verb} a token that has it`)
}

/** Null is never, the latest of all. */
export function isLater(time: Date | null, than: Date | null): boolean {
  if (than === null) return false
  return time === null || time.getTime() > than.getTime()
}

/** When a new token ends. Left out: with its parent, as its scopes and projects are those of the parent. */
export function expiryOf(parent: Token, wanted: string | null | undefined): Date | null {
  if (wanted === undefined) return parent.expiresAt
  const time = wanted === null ? null : futureTime(wanted)
  if (isLater(time, parent.expiresAt)) {
    const latest = parent.expiresAt!.toISOString()
    throw invalidField('#/expiresAt', 'outlives_parent', `must be at most ${latest}, when the calling token expires`)
  }
  return time
}

/** A pattern lets a 31st of February and a leap second pass; PostgreSQL and JavaScript do not. */
export function futureTime(text: string): Date {
  const time = new Date(text)
  const ms = time.getTime()
  if (Number.isNaN(ms) || time.getUTCFullYear() > 9999)
    throw invalidField('#/expiresAt', 'bad_format', 'is not a time there is')
  if (ms <= Date.now()) throw invalidField('#/expiresAt', 'in_the_past', 'must be in the future')
  return time
}

/** Whether a token is another one, or descends from it by any number of steps. */
async function descends(db: Db, token: Token, from: Token): Promise<boolean> {
  return (await selectAncestors(db, { id: token.id })).some(({ id }) => id === from.id)
}

/** The caller would get the secret of a token whose parent, the caller itself, was just revoked. */
export async function refuseOwnEnd(db: Db, caller: Token, old: Token): Promise<void> {
  if (caller.id === old.id || !(await descends(db, caller, old))) return
  throw invalidField(
    '#/revokeChildren',
    'revokes_caller',
    'would revoke the calling token, which descends from this one',
  )
}

/** Where the token that replaces `old` stands, and where the children of `old` go. */
export type Succession = { parentId: string | null; childrenOf: 'new' | 'parent' }

/**
 * The caller gets the new secret. If it is `old` itself or an ancestor, the new token stands where `old` stood. If not,
 * the new token is the caller's child, or it would survive the caller; the children of `old` stay where they end with
 * whoever may know their secrets.
 */
export async function successionOf(db: Db, caller: Token, old: Token): Promise<Succession> {
  if (isLater(old.expiresAt, caller.expiresAt)) {
    const latest = caller.expiresAt!.toISOString()
    throw new Fault('token_outlives_caller', `The calling token expires at ${latest}, before the one to rotate.`)
  }
  return (await descends(db, old, caller))
    ? { parentId: old.parentId, childrenOf: 'new' }
    : { parentId: caller.id, childrenOf: 'parent' }
}
