// API tokens: made, narrowed, rotated, revoked. A secret exists in the answer that made it and nowhere else.
import type { Static } from '@sinclair/typebox'
import type { Prisma, Token } from '../../generated/client.ts'
import { inBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound, together } from '../../platform/fields.ts'
import { newId } from '../../platform/ids.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/page.ts'
import { hashToken, newToken } from '../../platform/secrets.ts'
import { roleNames } from '../../schemas/people.ts'
import type { CreateToken, Token as TokenSchema, TokenWithSecret as WithSecretSchema } from '../../schemas/tokens.ts'
import { append, eventOf } from '../events/events.ts'
import { type Actor, rightsOf, type Scope } from './actor.ts'
import {
  expiryOf,
  lockCaller,
  refuseOwnEnd,
  requireRights,
  requireScopes,
  successionOf,
  withRights,
} from './lineage.ts'
import { deleteEndedTokens, revokeLine, selectLiveTokens, withdrawInvitations } from './statements.ts'
import { resolveZones, zoneViews } from './token-zones.ts'
import { isCovered, partsIn, type ZoneParts } from './zone-parts.ts'

export type TokenView = Static<typeof TokenSchema>
export type TokenWithSecret = Static<typeof WithSecretSchema>

// Nobody may be able to make more tokens than can be revoked at once: 40,000 events took longer than a transaction may.
const highestEvents = 1_000

/** With the names of its projects and zones: stored are their ids, so a new one of an old name is out of reach. */
export type TokenRow = Token & { projects: string[]; zones: TokenView['zones'] }

export async function withNames(db: Db, tokens: Token[]): Promise<TokenRow[]> {
  const ids = [...new Set(tokens.flatMap((token) => token.projectIds))]
  const select = { id: true, name: true }
  const found =
    ids.length > 0 ? await db.project.findMany({ where: { id: { in: ids } }, select, orderBy: { name: 'asc' } }) : []
  const viewZones = await zoneViews(db, tokens)
  return tokens.map((token) => {
    const projects = found.filter(({ id }) => token.projectIds.includes(id)).map(({ name }) => name)
    return { ...token, projects, zones: viewZones(token) }
  })
}

export function viewToken(row: TokenRow): TokenView {
  return {
    id: row.id,
    name: row.name,
    scopes: row.scopes as Scope[],
    projects: row.projectIds.length > 0 ? row.projects : null,
    zones: row.zones,
    prefix: row.prefix,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    parentId: row.parentId,
    createdBy: row.userId,
  }
}

/** Its use is no change: a token that is used all the time could not be changed with If-Match otherwise. */
export function versionOf({ lastUsedAt: _use, ...version }: TokenView): unknown {
  return version
}

export type NewToken = {
  accountId: string
  name: string
  scopes: readonly Scope[]
  projectIds: readonly string[]
  /** Default: no such bound. */
  zoneParts?: ZoneParts
  expiresAt: Date | null
  /** The token that makes it; default: none. */
  parentId?: string | null
  /** The person who makes it, or whose console it serves. */
  userId?: string | null
  sessionId?: string
  /** In no list, and in no quota; default: false. */
  hidden?: boolean
}

export async function insertToken(db: Db, { zoneParts, ...token }: NewToken): Promise<{ id: string; secret: string }> {
  const secret = newToken()
  const id = newId('tok')
  await db.token.create({
    data: {
      ...token,
      scopes: [...token.scopes],
      projectIds: [...token.projectIds],
      ...(zoneParts && { zoneParts: zoneParts as unknown as Prisma.InputJsonValue }),
      id,
      prefix: secret.slice(0, 8),
      hash: Uint8Array.from(hashToken(secret)),
      createdAt: new Date(),
    },
  })
  return { id, secret }
}

/** A live token of the account; one that was revoked is gone for every reader. */
export async function findToken(db: Db, actor: Actor, id: string): Promise<TokenView> {
  return viewToken(await findRow(db, actor, id))
}

/** The calling token, which may be that of a console. */
export async function findOwnToken(db: Db, { accountId, tokenId }: Actor): Promise<TokenView> {
  const token = await db.token.findFirst({ where: { id: tokenId, accountId, revokedAt: null } })
  if (!token) throw new Fault('token_revoked')
  const [row] = await withNames(db, [token])
  return viewToken(row!)
}

export async function findRow(db: Db, { accountId }: Actor, id: string): Promise<TokenRow> {
  const token = await db.token.findFirst({ where: { id, accountId, revokedAt: null, hidden: false } })
  if (!token) throw new Fault('not_found', `There is no token ${id}.`)
  const [row] = await withNames(db, [token])
  return row!
}

export async function listTokens(db: Db, { accountId }: Actor, page: PageRequest): Promise<PageOf<TokenView>> {
  const { where, ...rest } = byId(page, 'tok')
  const found = await db.token.findMany({ where: { ...where, accountId, revokedAt: null, hidden: false }, ...rest })
  return pageOf(await withNames(db, found), page, viewToken, (row) => [row.id])
}

/** Makes a token that can do no more than the one that makes it, and for no longer. */
export async function createToken(db: Db, actor: Actor, input: Static<typeof CreateToken>): Promise<TokenWithSecret> {
  return inTransaction(db, async (db) => {
    const parent = await lockCaller(db, actor)
    const granter = withRights(actor, parent)
    const scopes = input.scopes ?? [...granter.scopes]
    requireScopes(granter, scopes, 'grant it')
    const [expiresAt, projectIds, zoneParts] = await readGrant(db, granter, parent, input)
    const { id, secret } = await insertToken(db, {
      accountId: actor.accountId,
      name: input.name,
      scopes,
      projectIds,
      zoneParts,
      expiresAt,
      parentId: parent.id,
      // What a person's token makes is the person's as well.
      userId: parent.userId,
    })
    const made = await findToken(db, actor, id)
    await append(db, [eventOf(actor, 'token.created', { subject: id, projectId: null, data: made })])
    return { ...made, secret, token: secret }
  })
}

type Grant = Sound<Pick<Static<typeof CreateToken>, 'expiresAt' | 'projects' | 'zones'>>

/** When a new token ends, and which projects and parts of zones it is narrowed to. */
function readGrant(db: Db, actor: Actor, parent: Token, { expiresAt, projects, zones }: Grant) {
  const held = actor.zoneParts ?? null
  return together<[Date | null, string[], ZoneParts]>(
    () => expiryOf(parent, expiresAt),
    () => resolveProjects(db, actor, projects ?? null),
    () => (zones ? resolveZones(db, actor, zones, (part) => isCovered(part, held)) : held),
  )
}

/** Refuses what would be refused of a new token, and makes none. */
export async function checkToken(db: Db, actor: Actor, input: Sound<Static<typeof CreateToken>>): Promise<void> {
  await inTransaction(db, async (db) => readGrant(db, actor, await lockCaller(db, actor), input))
}

/** What is said of a project that was found, or nothing. */
type Objection = (projectId: string) => string | undefined

/** The ids of projects that are named by names or ids; `widens` says of one why it may not be among them. */
export async function resolveProjects(
  db: Db,
  actor: Actor,
  named: (string | undefined)[] | null,
  widens: Objection = () => undefined,
): Promise<string[]> {
  const keys = named?.map((key) => key ?? '')
  if (!keys) return [...(actor.projectIds ?? [])]
  const found = await db.project.findMany({
    where: { accountId: actor.accountId, OR: [{ name: { in: keys } }, { id: { in: keys } }] },
    select: { id: true, name: true },
  })
  const resolved = keys.map((key) => {
    const project = found.find(({ id, name }) => id === key || name === key)
    return project && (!actor.projectIds || actor.projectIds.includes(project.id)) ? project.id : null
  })
  const errors = keys.flatMap((key, index) => {
    const id = resolved[index]
    const pointer = `#/projects/${index}`
    if (!id) return key === '' ? [] : badField(pointer, 'not_found', `there is no project ${key}`)
    const objection = widens(id)
    return objection === undefined ? [] : badField(pointer, 'widens', objection)
  })
  refuseFields(errors)
  return resolved.filter((id) => id !== null)
}

/** Revokes the token and all that descend from it: whoever stole it may have made some. */
export async function revokeToken(
  db: Db,
  actor: Actor,
  id: string,
  precondition: (version: unknown) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const caller = await lockCaller(db, actor)
    const token = await findRow(db, actor, id)
    requireRights(withRights(actor, caller), token, 'revoke')
    precondition(versionOf(viewToken(token)))
    await endLine(db, actor, { id, itself: true })
  })
}

/** Whoever holds a token may end it, whatever its scopes are. */
export async function revokeOwnToken(db: Db, actor: Actor): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockCaller(db, actor)
    await endLine(db, actor, { id: actor.tokenId, itself: true })
  })
}

/**
 * Revokes what descends from a token, and the token itself if wanted; each of the first `highestEvents` has its event.
 * Whom they invited is not let in any more, nor whom the token itself did: whoever else had it may have sent that.
 */
export async function endLine(db: Db, actor: Actor, { id, itself }: { id: string; itself: boolean }): Promise<void> {
  await withdrawInvitations(db, { id, userId: null, roles: roleNames })
  const ended = (await revokeLine(db, { id, itself, now: new Date() })).map((row) => row.id)
  const told = [...(itself ? [id] : []), ...ended.filter((one) => one !== id)].slice(0, highestEvents)
  const rows = await withNames(db, await db.token.findMany({ where: { id: { in: told }, hidden: false } }))
  await append(
    db,
    rows.map((row) => eventOf(actor, 'token.revoked', { subject: row.id, projectId: null, data: viewToken(row) })),
  )
}

export type Rotation = { overlapSeconds: number; revokeChildren: boolean }

/** A new token in the place of an old one, whose secret works on for the overlap. Nothing lives longer by it. */
export async function rotateToken(
  db: Db,
  actor: Actor,
  id: string,
  { overlapSeconds, revokeChildren }: Rotation,
): Promise<TokenWithSecret> {
  return inTransaction(db, async (db) => {
    const caller = await lockCaller(db, actor)
    const old = await findRow(db, actor, id)
    requireRights(withRights(actor, caller), old, 'rotate')
    const { parentId, childrenOf } = await successionOf(db, caller, old)
    const { accountId, name, projectIds, expiresAt } = old
    const scopes = old.scopes as Scope[]
    const { userId } = childrenOf === 'new' ? old : caller
    const zoneParts = partsIn(old)
    const replacement = { accountId, name, scopes, projectIds, zoneParts, expiresAt, parentId, userId }
    if (revokeChildren) {
      await refuseOwnEnd(db, caller, old)
      await endLine(db, actor, { id, itself: false })
    }
    const ends = new Date(Date.now() + overlapSeconds * 1000)
    // With an overlap the old one expires by itself; without, it is revoked here and now.
    const change =
      overlapSeconds === 0 ? { revokedAt: ends } : { expiresAt: expiresAt && expiresAt < ends ? expiresAt : ends }
    await db.token.update({ where: { id }, data: change })
    // After that, so that an account that has as many tokens as it may can still rotate one.
    const { id: madeId, secret } = await insertToken(db, replacement)
    const heir = childrenOf === 'new' ? madeId : old.parentId
    await db.token.updateMany({ where: { parentId: id, id: { not: madeId } }, data: { parentId: heir } })
    const sent = { accountId, invitedBy: id }
    if (childrenOf === 'new') await db.invitation.updateMany({ where: sent, data: { invitedBy: madeId } })
    const made = await findToken(db, actor, madeId)
    await append(db, [eventOf(actor, 'token.rotated', { subject: id, projectId: null, data: made })])
    return { ...made, secret, token: secret }
  })
}

/** Which of these tokens are still accepted, and with which rights. */
export async function liveTokens(db: Db, tokenIds: string[]): Promise<Map<string, string>> {
  const found = await selectLiveTokens(db, { ids: tokenIds })
  return new Map(found.map((token) => [token.id, rightsOf(token)]))
}

// Until then a caller is told that its token was revoked or has expired, and not that there is none.
const keptMs = 90 * 24 * 60 * 60_000

/** Deletes tokens that ended long ago, and tells how many. */
export function forgetEndedTokens(db: Db, signal?: AbortSignal): Promise<number> {
  const before = new Date(Date.now() - keptMs)
  return inBatches(signal, async () => {
    const { length } = await deleteEndedTokens(db, { before, limit: 1_000 })
    // Parents of what was deleted may be due now.
    return { count: length, more: length > 0 }
  })
}
