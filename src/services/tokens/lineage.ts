// How tokens come from each other. A child never has a right that its parent lacks, and never outlives it. A token that
// rotated itself shares its lineage with its successor. Revoking a token ends its lineage and everything that created.
import type { Token } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { type Actor, allows, isCovered, lockAccount, partsIn, type Scope } from '../identity/index.ts'
import { selectAncestors } from './statements.ts'

/** Like `readCaller`, with the account locked. Refuse what you can before: the lock is for changes. */
export async function lockCaller(db: Db, actor: Actor): Promise<Token> {
  await lockAccount(db, { id: actor.accountId })
  return readCaller(db, actor)
}

/**
 * Decides about a change before the account is held, so that refusals wait for nobody, and again once it is. What takes
 * reading a whole line belongs after it.
 */
export async function decideTwice<T>(db: Db, actor: Actor, decide: (caller: Token) => Promise<T>): Promise<T> {
  await decide(await readCaller(db, actor))
  return decide(await lockCaller(db, actor))
}

/**
 * The row of the calling token, if it is still accepted. For a console's token it is the membership's: what a person creates
 * at a console outlives the console's token and ends with the membership. Tokens of an account are created, rotated and
 * revoked one at a time: a child created while its parent is revoked would survive it.
 */
export async function readCaller(db: Db, { accountId, tokenId }: Actor): Promise<Token> {
  const caller = await db.token.findFirst({ where: { id: tokenId, accountId }, include: { parent: true } })
  if (!caller) throw new Fault('invalid_token')
  if (caller.revokedAt) throw new Fault('token_revoked')
  if (caller.expiresAt && caller.expiresAt.getTime() <= Date.now()) throw new Fault('token_expired')
  return caller.sessionId === null ? caller : caller.parent!
}

/** The actor with the rights its token has now: it may have been narrowed since the request arrived. */
export function withRights(actor: Actor, token: Token, needed: Scope = 'tokens:write'): Actor {
  const { scopes, projectIds } = token
  const narrowed = { projectIds: projectIds.length > 0 ? projectIds : null, zoneParts: partsIn(token) }
  const now = { ...actor, scopes: scopes as Scope[], ...narrowed }
  requireScopes(now, [needed], `change ${needed.split(':', 1)}`)
  return now
}

// `*` may grant every scope of the account; only those who hold `operator` may grant it.
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

type Rights = { id: string; scopes: readonly string[]; projectIds: readonly string[]; zoneParts: unknown }

/** Throws unless the actor has every right of the token that it wants to end or replace. */
export function requireRights(actor: Actor, token: Rights, verb: 'revoke' | 'rotate' | 'change'): void {
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

/** Throws if the caller would get the secret of a token that outlives it. */
export function requireTime(caller: Token, old: Token): void {
  if (!isLater(old.expiresAt, caller.expiresAt)) return
  const latest = caller.expiresAt!.toISOString()
  throw new Fault('token_outlives_caller', `The calling token expires at ${latest}, before the token to rotate.`)
}

/** When a new token expires; by default with its parent. */
export function expiryOf(parent: Token, wanted: string | null | undefined): Date | null {
  if (wanted === undefined) return parent.expiresAt
  const time = wanted === null ? null : futureTime(wanted)
  if (isLater(time, parent.expiresAt)) {
    const latest = parent.expiresAt!.toISOString()
    throw invalidField('#/expiresAt', 'outlives_parent', `must be at most ${latest}, when the calling token expires`)
  }
  return time
}

/** The schema's pattern accepts a 31st of February and a leap second; PostgreSQL and JavaScript do not. */
export function futureTime(text: string): Date {
  const time = new Date(text)
  const ms = time.getTime()
  if (Number.isNaN(ms) || time.getUTCFullYear() > 9999)
    throw invalidField('#/expiresAt', 'bad_format', 'is not a valid time')
  if (ms <= Date.now()) throw invalidField('#/expiresAt', 'in_the_past', 'must be in the future')
  return time
}

/** Whether a token is another one, or descends from it by any number of steps. */
async function descends(db: Db, token: Token, from: Token): Promise<boolean> {
  return (await selectAncestors(db, { id: token.id })).some(({ id }) => id === from.id)
}

/** By the id of its first token. */
export function lineageOf({ lineageId, id }: Pick<Token, 'lineageId' | 'id'>): string {
  return lineageId ?? id
}

/** The parent of the token that replaces `old`, the new parent of `old`'s children, and the lineage; null: its own. */
export type Succession = { parentId: string | null; childrenOf: 'new' | 'parent'; lineageId: string | null }

/**
 * The caller gets the new secret. If it is `old` or an ancestor, the new token takes the parent and the children of `old`.
 * If not, the new token becomes the caller's child, or it would survive the caller, and the children of `old` move up.
 *
 * `line` is what ends with `old`. A caller in it may be a thief who stole `old`, so its new token ends with `old` as well.
 * Any other caller survives the revocation of `old`, and so does its new token.
 */
export async function successionOf(
  db: Db,
  caller: Token,
  old: Token,
  line: readonly { id: string }[],
): Promise<Succession> {
  const lineageId = line.some(({ id }) => id === caller.id) ? lineageOf(old) : null
  return (await descends(db, old, caller))
    ? { parentId: old.parentId, childrenOf: 'new', lineageId }
    : { parentId: caller.id, childrenOf: 'parent', lineageId }
}
