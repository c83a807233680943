// API tokens: made, narrowed, rotated, revoked. A secret exists in the answer that made it and nowhere else.
import type { Static } from '@sinclair/typebox'
import { type Actor, allows, type Scope } from '../actor.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault, invalidField } from '../errors.ts'
import { newId } from '../ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { CreateToken, Token as TokenSchema } from '../schemas/tokens.ts'
import { hashToken, newToken } from '../secrets.ts'
import { append, eventOf } from './events.ts'

export type TokenView = Static<typeof TokenSchema>

type TokenRow = {
  id: string
  name: string
  scopes: Scope[]
  projectIds: string[]
  projects: string[]
  prefix: string
  lastUsedAt: Date | null
  expiresAt: Date | null
  createdAt: Date
}

// Projects are stored by id, so that a new project of an old name is out of reach, and shown by name.
const columns = sql`t.id, t.name, t.scopes, t.project_ids AS "projectIds", t.prefix, t.last_used_at AS "lastUsedAt",
  t.expires_at AS "expiresAt", t.created_at AS "createdAt",
  ARRAY(SELECT p.name FROM project p WHERE p.id = ANY(t.project_ids) ORDER BY p.name) AS projects`

function view(row: TokenRow): TokenView {
  return {
    id: row.id,
    name: row.name,
    scopes: row.scopes,
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
export async function findToken(db: Db, actor: Actor, id: string, lock = false): Promise<TokenView> {
  const row = await findRow(db, actor, id, lock)
  return view(row)
}

async function findRow(db: Db, actor: Actor, id: string, lock = false): Promise<TokenRow> {
  const [row] = await rows<TokenRow>(
    db,
    sql`SELECT ${columns} FROM token t WHERE t.id = ${id} AND t.account_id = ${actor.accountId} AND t.revoked_at IS NULL
        ${lock ? sql`FOR UPDATE` : sql``}`,
  )
  if (!row) throw new Fault('not_found', `There is no token ${id}.`)
  return row
}

export async function listTokens(db: Db, actor: Actor, page: PageRequest): Promise<PageOf<TokenView>> {
  const descending = page.order === 'desc'
  const after = page.after ? (descending ? sql`AND t.id < ${page.after[0]}` : sql`AND t.id > ${page.after[0]}`) : sql``
  const found = await rows<TokenRow>(
    db,
    sql`SELECT ${columns} FROM token t WHERE t.account_id = ${actor.accountId} AND t.revoked_at IS NULL ${after}
        ORDER BY t.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(found, page, view, (row) => [row.id])
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
    await append(db, [eventOf(actor, 'token.created', id, null, made)])
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
  const found = await rows<{ id: string; name: string }>(
    db,
    sql`SELECT id, name FROM project WHERE account_id = ${actor.accountId}
        AND (name = ANY(${keys}::text[]) OR id = ANY(${keys}::text[]))`,
  )
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
    const token = await findToken(db, actor, id, true)
    precondition(token)
    await db.token.update({ where: { id }, data: { revokedAt: new Date() } })
    await append(db, [eventOf(actor, 'token.revoked', id, null, token)])
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
    const old = await findRow(db, actor, id, true)
    if (!old.scopes.every((scope) => grants(actor.scopes, scope))) {
      throw new Fault('insufficient_scope', 'The calling token has fewer scopes than the one to rotate.', {
        requiredScope: '*',
      })
    }
    const { name, scopes, projectIds, expiresAt } = old
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
    await append(db, [eventOf(actor, 'token.rotated', id, null, made)])
    return { ...made, token: secret }
  })
}

/** Those of the tokens of open streams that still open doors. */
export async function liveTokens(db: Db, tokenIds: string[]): Promise<Set<string>> {
  const found = await rows<{ id: string }>(
    db,
    sql`SELECT t.id FROM token t JOIN account a ON a.id = t.account_id
        WHERE t.id = ANY(${tokenIds}::text[]) AND a.suspended_at IS NULL
          AND (t.revoked_at IS NULL OR t.revoked_at > now()) AND (t.expires_at IS NULL OR t.expires_at > now())`,
  )
  return new Set(found.map((row) => row.id))
}
