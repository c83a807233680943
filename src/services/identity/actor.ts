// Who acts: the account, the token, and what it may touch. Every finder of every service takes one first.
import type { tokenScopes } from '../../schemas/tokens.ts'
import type { ZoneParts } from './zone-parts.ts'

export type Scope = (typeof tokenScopes)[number]

export type Actor = {
  accountId: string
  tokenId: string
  scopes: readonly Scope[]
  /** Ids of the projects the token is narrowed to; null when it sees the whole account. */
  projectIds: readonly string[] | null
  /** The parts of zones that the token or the key is narrowed to; it can do nothing outside them. Default: null. */
  zoneParts?: ZoneParts
  /** The person who acts, where it is the token of a console. */
  userId?: string | null
}

/** Who did it, as events tell: the person at a console, otherwise the token. */
export function actorName({ userId, tokenId }: Actor): string {
  return userId ?? tokenId
}

/** Whether an event of this type may have changed what tokens of its account may do. */
export function changesTokens(eventType: string): boolean {
  return /^(token|account|member)\./.test(eventType)
}

/** The rights of a token as a text that differs if they do. */
export function rightsOf({ scopes, projectIds, zoneParts = null }: Pick<Actor, 'scopes' | 'projectIds' | 'zoneParts'>) {
  return JSON.stringify([[...scopes].sort(), [...(projectIds ?? [])].sort(), zoneParts])
}

/** Write implies read; `*` is everything of the account, but never the operator's part of the API. */
export function allows(held: readonly Scope[], needed: Scope): boolean {
  if (held.includes(needed)) return true
  if (needed === 'operator') return false
  if (held.includes('*')) return true
  return needed.endsWith(':read') && held.includes(needed.replace(/:read$/, ':write') as Scope)
}
