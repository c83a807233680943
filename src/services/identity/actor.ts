// The actor of a request: its account, token and rights. Every finder of every service takes an actor.
import type { tokenScopes } from '../../schemas/tokens.ts'
import type { ZoneParts } from './zone-parts.ts'

export type Scope = (typeof tokenScopes)[number]

export type Actor = {
  accountId: string
  tokenId: string
  scopes: readonly Scope[]
  /** Ids of the projects that the token is limited to; null for the whole account. */
  projectIds: readonly string[] | null
  /** The parts of zones that the token or key is limited to; it can do nothing outside them. Default: null. */
  zoneParts?: ZoneParts
  /** The person, if the token is a console token. */
  userId?: string | null
}

/** The actor in events: the person in a console, otherwise the token. */
export function actorName({ userId, tokenId }: Actor): string {
  return userId ?? tokenId
}

/** Whether an event of this type may have changed the rights of its account's tokens. */
export function changesTokens(eventType: string): boolean {
  return /^(token|account|member)\./.test(eventType)
}

/** The rights of a token as a comparable string. */
export function rightsOf({ scopes, projectIds, zoneParts = null }: Pick<Actor, 'scopes' | 'projectIds' | 'zoneParts'>) {
  return JSON.stringify([[...scopes].sort(), [...(projectIds ?? [])].sort(), zoneParts])
}

/** Write implies read; `*` allows everything in the account, but never operator routes. */
export function allows(scopes: readonly Scope[], needed: Scope): boolean {
  if (scopes.includes(needed)) return true
  if (needed === 'operator') return false
  if (scopes.includes('*')) return true
  return needed.endsWith(':read') && scopes.includes(needed.replace(/:read$/, ':write') as Scope)
}
