// Narrows tokens: an earlier end, fewer scopes, fewer projects, smaller parts of zones. What descends from one never has more than it.
import { isDeepStrictEqual } from 'node:util'
import type { Static } from '@sinclair/typebox'
import { Prisma, type Token } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { invalidField } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound, together } from '../../platform/fields.ts'
import { roleNames } from '../../schemas/people.ts'
import type { ChangeToken } from '../../schemas/tokens.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, isCovered, partsIn, type Scope, withinParts, type ZoneParts } from '../identity/index.ts'
import { decideTwice, futureTime, grants, isLater, readCaller, requireRights, withRights } from './lineage.ts'
import { selectDescendants, withdrawInvitations } from './statements.ts'
import { resolveZones } from './token-zones.ts'
import { findRow, findToken, resolveProjects, type TokenView, versionOf, viewToken, withNames } from './tokens.ts'

type Input = Static<typeof ChangeToken>
type Rights = Pick<Token, 'scopes' | 'projectIds' | 'expiresAt'> & { zoneParts: ZoneParts }

export type TokenChange = { id: string; input: Input; precondition(version: unknown): void }

export async function changeToken(db: Db, actor: Actor, { id, input, precondition }: TokenChange): Promise<TokenView> {
  return inTransaction(db, async (db) => {
    const rights = await decideTwice(db, actor, async (caller) => {
      const changer = withRights(actor, caller)
      const token = await findRow(db, actor, id)
      requireRights(changer, token, 'change')
      precondition(versionOf(viewToken(token)))
      return narrowed(db, changer, token, input)
    })
    const name = input.name !== undefined && { name: input.name }
    await db.token.update({ where: { id }, data: { ...stored(rights), ...name } })
    const after = await findToken(db, actor, id)
    await append(db, [eventOf(actor, 'token.updated', { subject: id, projectId: null, data: after })])
    await narrowDescendants(db, actor, id)
    // It may not have been able to send them with what is left.
    if (input.scopes ?? input.projects) await withdrawInvitations(db, { id, userId: null, roles: roleNames })
    return after
  })
}

/** Refuses what would be refused of a change by itself, and changes nothing. */
export async function checkTokenChange(db: Db, actor: Actor, id: string, input: Sound<Input>): Promise<void> {
  const changer = withRights(actor, await readCaller(db, actor))
  const token = await findRow(db, actor, id)
  requireRights(changer, token, 'change')
  await narrowed(db, changer, token, input)
}

/** As Prisma takes them: its null of JSON is not that of the database. */
function stored({ zoneParts, ...rights }: Rights) {
  return { ...rights, zoneParts: (zoneParts ?? Prisma.DbNull) as Prisma.InputJsonValue }
}

/** The rights that are left to the token; throws if one of them is more than it has, naming each. */
async function narrowed(db: Db, actor: Actor, token: Token, input: Sound<Input>): Promise<Rights> {
  const [scopes, projectIds, zoneParts, expiresAt] = await together<[string[], string[], ZoneParts, Date | null]>(
    () => (input.scopes ? fewerScopes(token, input.scopes) : token.scopes),
    () => {
      const isOutside = (id: string) => token.projectIds.length > 0 && !token.projectIds.includes(id)
      const widens = (id: string) => (isOutside(id) ? 'the token cannot access it' : undefined)
      return input.projects ? resolveProjects(db, actor, input.projects, widens) : token.projectIds
    },
    () => {
      const held = partsIn(token)
      return input.zones ? resolveZones(db, actor, input.zones, (part) => isCovered(part, held)) : held
    },
    () => (input.expiresAt === undefined ? token.expiresAt : earlierEnd(token, input.expiresAt)),
  )
  return { scopes, projectIds, zoneParts, expiresAt }
}

function fewerScopes(token: Token, wanted: (Scope | undefined)[]): Scope[] {
  const isWider = (scope: Scope | undefined) => scope && !grants(token.scopes as Scope[], scope)
  refuseFields(
    wanted.flatMap((scope, index) =>
      isWider(scope) ? badField(`#/scopes/${index}`, 'widens', 'the token does not have this scope') : [],
    ),
  )
  return wanted.filter((scope) => scope !== undefined)
}

function earlierEnd(token: Token, wanted: string): Date {
  const time = futureTime(wanted)
  if (!isLater(time, token.expiresAt)) return time
  const latest = token.expiresAt!.toISOString()
  throw invalidField('#/expiresAt', 'widens', `must be at most ${latest}, when the token expires`)
}

/** What both have; null if that is nothing. */
function common(child: Rights, parent: Rights): Rights | null {
  const [held, given] = [child.scopes as Scope[], parent.scopes as Scope[]]
  const both = [...held.filter((one) => grants(given, one)), ...given.filter((one) => grants(held, one))]
  const scopes = held.every((one) => grants(given, one)) ? child.scopes : [...new Set(both)]
  // An empty list stands for the whole account.
  const isWhole = parent.projectIds.length === 0
  const projectIds = child.projectIds.length === 0 ? parent.projectIds : child.projectIds
  const left = isWhole ? child.projectIds : projectIds.filter((id) => parent.projectIds.includes(id))
  const zoneParts = withinParts(child.zoneParts, parent.zoneParts)
  if (scopes.length === 0 || (!isWhole && left.length === 0) || zoneParts?.length === 0) return null
  const expiresAt = isLater(child.expiresAt, parent.expiresAt) ? parent.expiresAt : child.expiresAt
  return { scopes, projectIds: left, zoneParts, expiresAt }
}

const rightsIn = (token: Token): Rights => ({ ...token, zoneParts: partsIn(token) })

const isSame = (one: Rights, other: Rights) =>
  one.scopes.join() === other.scopes.join() &&
  one.projectIds.join() === other.projectIds.join() &&
  isDeepStrictEqual(one.zoneParts, other.zoneParts) &&
  one.expiresAt?.getTime() === other.expiresAt?.getTime()

/** Parents before their children, each by what is left to its own parent. */
export async function narrowDescendants(db: Db, actor: Actor, id: string): Promise<void> {
  const line = [id, ...(await selectDescendants(db, { id })).map((row) => row.id)]
  const found = await db.token.findMany({ where: { id: { in: line } } })
  const tokens = new Map(found.map((token) => [token.id, token]))
  const changed: { token: Token; type: 'token.updated' | 'token.revoked' }[] = []
  for (const token of line.slice(1).map((one) => tokens.get(one)!)) {
    const parent = tokens.get(token.parentId!)!
    const rights = parent.revokedAt ? null : common(rightsIn(token), rightsIn(parent))
    if (rights && isSame(rights, rightsIn(token))) continue
    const data = rights ? stored(rights) : { revokedAt: new Date() }
    const after = await db.token.update({ where: { id: token.id }, data })
    tokens.set(token.id, after)
    changed.push({ token: after, type: rights ? 'token.updated' : 'token.revoked' })
  }
  const told = changed.filter(({ token }) => !token.hidden)
  const rows = await withNames(
    db,
    told.map(({ token }) => token),
  )
  await append(
    db,
    rows.map((row, index) =>
      eventOf(actor, told[index]!.type, { subject: row.id, projectId: null, data: viewToken(row) }),
    ),
  )
}
