// API tokens: listed, created, forgotten. A secret is in the response that created it and nowhere else.
import type { Static } from '@sinclair/typebox'
import type { Prisma, Token } from '../../generated/client.ts'
import { inBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound, together } from '../../platform/fields.ts'
import { newId } from '../../platform/ids.ts'
import { hashToken, newToken } from '../../platform/secrets/secrets.ts'
import {
  type CreateToken,
  Token as TokenSchema,
  type TokenWithSecret as WithSecretSchema,
} from '../../schemas/tokens.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, isCovered, rightsOf, type Scope, type ZoneParts } from '../identity/index.ts'
import { quotaFault } from '../quotas/index.ts'
import { decideTwice, expiryOf, lineageOf, readCaller, requireScopes, withRights } from './lineage.ts'
import { deleteEndedTokens, forgetRevoked, selectLiveTokens } from './statements.ts'
import { resolveZones, zoneViews } from './token-zones.ts'

export type TokenView = Static<typeof TokenSchema>
export type TokenWithSecret = Static<typeof WithSecretSchema>

/** With the names of its projects and zones. Ids are stored, so that a new project with an old name stays out of reach. */
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

const viewRow = viewOf(TokenSchema)

export function viewToken(row: TokenRow): TokenView {
  return viewRow(row, {
    projects: row.projectIds.length > 0 ? row.projects : null,
    lineage: lineageOf(row),
    replaces: row.replacesId,
    replacedBy: row.replacedById,
    createdBy: row.userId,
  })
}

/** Without its last use: otherwise nobody could change a busy token with If-Match. */
export function versionOf({ lastUsedAt: _use, ...version }: TokenView): unknown {
  return version
}

export type NewToken = {
  /** Default: a new one. */
  id?: string
  accountId: string
  name: string
  scopes: readonly Scope[]
  projectIds: readonly string[]
  /** Default: no such bound. */
  zoneParts?: ZoneParts
  expiresAt: Date | null
  /** The token that bounds it; default: none. */
  parentId?: string | null
  /** The token that asks for it; default: its parent. */
  creatorId?: string | null
  /** Default: one of its own. */
  lineageId?: string | null
  replacesId?: string
  /** The person who makes it, or whose console it serves. */
  userId?: string | null
  sessionId?: string
  /** In no list, and in no quota; default: false. */
  hidden?: boolean
}

export const newTokenId = () => newId('tok')

export async function insertToken(
  db: Db,
  { id = newTokenId(), zoneParts, ...token }: NewToken,
): Promise<{ id: string; secret: string }> {
  const secret = newToken()
  await db.token.create({
    data: {
      creatorId: token.parentId ?? null,
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
  if (!token.hidden) await boundRevoked(db, token.accountId)
  return { id, secret }
}

/** A quota for revoked tokens: whoever creates and revokes tokens again and again must not fill the table. */
async function boundRevoked(db: Db, accountId: string): Promise<void> {
  const [full] = await forgetRevoked(db, { accountId })
  if (!full) return
  const max = Number(full.max)
  throw quotaFault({ limit: 'revokedTokens', used: max, max })
}

/** A live token of the account; a revoked one is not found. */
export async function findToken(db: Db, actor: Actor, id: string): Promise<TokenView> {
  return viewToken(await findRow(db, actor, id))
}

/** The calling token, which may belong to a console. */
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

/** Creates a token that can do no more than the calling one, and for no longer. */
export async function createToken(db: Db, actor: Actor, input: Static<typeof CreateToken>): Promise<TokenWithSecret> {
  return inTransaction(db, async (db) => {
    const { parent, scopes, grant } = await decideTwice(db, actor, async (parent) => {
      const granter = withRights(actor, parent)
      const scopes = input.scopes ?? [...granter.scopes]
      requireScopes(granter, scopes, 'grant it')
      return { parent, scopes, grant: await readGrant(db, granter, parent, input) }
    })
    const [expiresAt, projectIds, zoneParts] = grant
    const { id, secret } = await insertToken(db, {
      accountId: actor.accountId,
      name: input.name,
      scopes,
      projectIds,
      zoneParts,
      expiresAt,
      parentId: parent.id,
      // What a person's token creates belongs to the person as well.
      userId: parent.userId,
    })
    const created = await findToken(db, actor, id)
    await append(db, [eventOf(actor, 'token.created', { subject: id, projectId: null, data: created })])
    return { ...created, secret, token: secret }
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

/** Refuses what `createToken` would refuse, and creates nothing. */
export async function checkToken(db: Db, actor: Actor, input: Sound<Static<typeof CreateToken>>): Promise<void> {
  await readGrant(db, actor, await readCaller(db, actor), input)
}

/** Why a project that was found is refused; undefined if it isn't. */
type Objection = (projectId: string) => string | undefined

/** The ids of projects given by name or id; `widens` says why one of them is refused. */
export async function resolveProjects(
  db: Db,
  actor: Actor,
  named: (string | undefined)[] | null,
  widens: Objection = () => undefined,
): Promise<string[]> {
  const keys = named?.map((key) => key ?? '')
  if (!keys) return [...(actor.projectIds ?? [])]
  const found = await db.project.findMany({
    where: {
      accountId: actor.accountId,
      OR: [{ name: { in: keys } }, { id: { in: keys } }, { formerNames: { hasSome: keys } }],
    },
    select: { id: true, name: true, formerNames: true },
  })
  const resolved = keys.map((key) => {
    const project = found.find((one) => [one.id, one.name, ...one.formerNames].includes(key))
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

/** Which of these tokens are still accepted, and with which rights. */
export async function liveTokens(db: Db, tokenIds: string[]): Promise<Map<string, string>> {
  const found = await selectLiveTokens(db, { ids: tokenIds })
  return new Map(found.map((token) => [token.id, rightsOf(token)]))
}

// Until then a caller hears that its token was revoked or has expired, instead of `invalid_token`.
const keptMs = 90 * 24 * 60 * 60_000

/** Deletes tokens that ended long ago; returns how many. */
export function forgetEndedTokens(db: Db, signal?: AbortSignal): Promise<number> {
  const before = new Date(Date.now() - keptMs)
  return inBatches(signal, async () => {
    const { length } = await deleteEndedTokens(db, { before, limit: 1_000 })
    // Parents of what was deleted may be due now.
    return { count: length, more: length > 0 }
  })
}
