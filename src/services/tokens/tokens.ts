// API tokens: made, narrowed, rotated, revoked. A secret exists in the answer that made it and nowhere else.
import type { Static } from '@sinclair/typebox'
import type { Token } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/page.ts'
import { hashToken, newToken } from '../../platform/secrets.ts'
import type { CreateToken, Token as TokenSchema } from '../../schemas/tokens.ts'
import { append, eventOf } from '../events/events.ts'
import { type Actor, allows, type Scope } from './actor.ts'
import { lockToken, selectLiveTokens } from './statements.ts'

export type TokenView = Static<typeof TokenSchema>

/** With the names of its projects: stored are their ids, so a new project of an old name is out of reach. */
type TokenRow = Token & { projects: string[] }

async function withProjects(db: Db, tokens: Token[]): Promise<TokenRow[]> {
  const ids = [...new Set(tokens.flatMap((token) => token.projectIds))]
  const select = { id: true, name: true }
  const found =
    ids.length > 0 ? await db.project.findMany({ where: { id: { in: ids } }, select, orderBy: { name: 'asc' } }) : []
  return tokens.map((token) => {
    const projects = found.filter(({ id }) => token.projectIds.includes(id)).map(({ name }) => name)
    return { ...token, projects }
  })
}

function view(row: TokenRow): TokenView {
  return {
    id: row.id,
    name: row.name,
    scopes: row.scopes as Scope[],
    projects: row.projectIds.length > 0 ? row.projects : null,
    prefix: row.prefix,
    lastUsedAt: row.lastUsedAt?.toISOString() ?? null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
  }
}

export type NewToken = {
  accountId: string
  name: string
  scopes: readonly Scope[]
  projectIds: readonly string[]
  expiresAt: Date | null
}

export async function insertToken(db: Db, token: NewToken): Promise<{ id: string; secret: string }> {
  const secret = newToken()
  const id = newId('tok')
  await db.token.create({
    data: {
      ...token,
      scopes: [...token.scopes],
      projectIds: [...token.projectIds],
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
  return view(await findRow(db, actor, id))
}

async function findRow(db: Db, { accountId }: Actor, id: string): Promise<TokenRow> {
  const token = await db.token.findFirst({ where: { id, accountId, revokedAt: null } })
  if (!token) throw new Fault('not_found', `There is no token ${id}.`)
  const [row] = await withProjects(db, [token])
  return row!
}

/** The token, held against other changes until the transaction ends. */
async function findToChange(db: Db, actor: Actor, id: string): Promise<TokenRow> {
  await lockToken(db, { id, accountId: actor.accountId })
  return findRow(db, actor, id)
}

export async function listTokens(db: Db, { accountId }: Actor, page: PageRequest): Promise<PageOf<TokenView>> {
  const { where, ...rest } = byId(page)
  const found = await db.token.findMany({ where: { ...where, accountId, revokedAt: null }, ...rest })
  return pageOf(await withProjects(db, found), page, view, (row) => [row.id])
}

/** Makes a token that can do no more than the one that makes it. */
export async function createToken(
  db: Db,
  actor: Actor,
  input: Static<typeof CreateToken>,
): Promise<TokenView & { token: string }> {
  const scopes = input.scopes ?? [...actor.scopes]
  const missing = scopes.findIndex((scope) => !grants(actor.scopes, scope))
  if (missing >= 0) {
    const detail = `The calling token does not have ${scopes[missing]}, so it cannot grant it.`
    throw new Fault('insufficient_scope', detail, { requiredScope: scopes[missing] })
  }
  const expiresAt = input.expiresAt ? futureTime(input.expiresAt) : null
  return inTransaction(db, async (db) => {
    const projectIds = await resolveProjects(db, actor, input.projects ?? null)
    const { id, secret } = await insertToken(db, {
      accountId: actor.accountId,
      name: input.name,
      scopes,
      projectIds,
      expiresAt,
    })
    const made = await findToken(db, actor, id)
    await append(db, [eventOf(actor, 'token.created', { subject: id, projectId: null, data: made })])
    return { ...made, token: secret }
  })
}

/** A pattern lets a 31st of February and a leap second pass; PostgreSQL and JavaScript do not. */
function futureTime(text: string): Date {
  const time = new Date(text)
  const ms = time.getTime()
  if (Number.isNaN(ms) || time.getUTCFullYear() > 9999)
    throw invalidField('#/expiresAt', 'bad_format', 'is not a time there is')
  if (ms <= Date.now()) throw invalidField('#/expiresAt', 'in_the_past', 'must be in the future')
  return time
}

// `*` may grant every scope of the account; the operator's own is granted by those who hold it.
function grants(held: readonly Scope[], wanted: Scope): boolean {
  return wanted === '*' ? held.includes('*') : allows(held, wanted)
}

async function resolveProjects(db: Db, actor: Actor, keys: string[] | null): Promise<string[]> {
  if (!keys) return [...(actor.projectIds ?? [])]
  const found = await db.project.findMany({
    where: { accountId: actor.accountId, OR: [{ name: { in: keys } }, { id: { in: keys } }] },
    select: { id: true, name: true },
  })
  return keys.map((key, index) => {
    const project = found.find(({ id, name }) => id === key || name === key)
    const allowed = project && (!actor.projectIds || actor.projectIds.includes(project.id))
    if (!allowed) throw invalidField(`#/projects/${index}`, 'not_found', `there is no project ${key}`)
    return project.id
  })
}

export async function revokeToken(
  db: Db,
  actor: Actor,
  id: string,
  precondition: (view: TokenView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const token = view(await findToChange(db, actor, id))
    precondition(token)
    await db.token.update({ where: { id }, data: { revokedAt: new Date() } })
    await append(db, [eventOf(actor, 'token.revoked', { subject: id, projectId: null, data: token })])
  })
}

/** A new token in the place of an old one, whose secret works on for the overlap. */
export async function rotateToken(
  db: Db,
  actor: Actor,
  id: string,
  overlapSeconds: number,
): Promise<TokenView & { token: string }> {
  return inTransaction(db, async (db) => {
    const old = await findToChange(db, actor, id)
    const { scopes } = view(old)
    if (!scopes.every((scope) => grants(actor.scopes, scope))) {
      throw new Fault('insufficient_scope', 'The calling token has fewer scopes than the one to rotate.', {
        requiredScope: '*',
      })
    }
    const { name, projectIds, expiresAt } = old
    const { id: madeId, secret } = await insertToken(db, {
      accountId: actor.accountId,
      name,
      scopes,
      projectIds,
      expiresAt,
    })
    const ends = new Date(Date.now() + overlapSeconds * 1000)
    // With an overlap the old one expires by itself; without, it is revoked here and now.
    const change =
      overlapSeconds === 0 ? { revokedAt: ends } : { expiresAt: expiresAt && expiresAt < ends ? expiresAt : ends }
    await db.token.update({ where: { id }, data: change })
    const made = await findToken(db, actor, madeId)
    await append(db, [eventOf(actor, 'token.rotated', { subject: id, projectId: null, data: made })])
    return { ...made, token: secret }
  })
}

/** Which of these tokens are still accepted. */
export async function liveTokens(db: Db, tokenIds: string[]): Promise<Set<string>> {
  const found = await selectLiveTokens(db, { ids: tokenIds })
  return new Set(found.map(({ id }) => id))
}
