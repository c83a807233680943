// Memberships: a person in an account, with a role. A hidden token, whose secret nobody has, carries the role's rights.
import type { Static } from '@sinclair/typebox'
import type { Membership, User } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { Member } from '../../schemas/people.ts'
import { append } from '../events/index.ts'
import { lockAccount } from '../identity/index.ts'
import { insertToken } from '../tokens/index.ts'
import { type Role, scopesOf } from './roles.ts'
import { lockUser } from './sign-in-statements.ts'

export type MemberView = Static<typeof Member>
export type MemberRow = Membership & { user: User; projects: string[] }

/** Adds the names of the projects to which each row is limited. */
export async function withProjectNames<T extends { projectIds: string[] }>(
  db: Db,
  rows: T[],
): Promise<(T & { projects: string[] })[]> {
  const ids = [...new Set(rows.flatMap(({ projectIds }) => projectIds))]
  const query = { where: { id: { in: ids } }, select: { id: true, name: true }, orderBy: { name: 'asc' } } as const
  const found = ids.length > 0 ? await db.project.findMany(query) : []
  return rows.map((row) => ({
    ...row,
    projects: found.filter(({ id }) => row.projectIds.includes(id)).map(({ name }) => name),
  }))
}

const viewRow = viewOf(Member)

export function viewMember(row: MemberRow): MemberView {
  const { email, name } = row.user
  return viewRow(row, { email, name, projects: row.projectIds.length > 0 ? row.projects : null })
}

/** Finds a member of the account by the id of the membership or of the person. */
export async function findMembership(db: Db, accountId: string, id: string): Promise<MemberRow> {
  const where = { accountId, ...(id.startsWith('usr_') ? { userId: id } : { id }) }
  const found = await db.membership.findFirst({ where, include: { user: true } })
  if (!found) throw new Fault('not_found', `There is no member ${id}.`)
  const [row] = await withProjectNames(db, [found])
  return row!
}

export type NewMember = { accountId: string; user: User; role: Role; projectIds: readonly string[]; by?: string }

/** Adds a person to an account; `db` must be in a transaction. `by` is the actor of the event; default: the person. */
export async function addMember(db: Db, { accountId, user, role, projectIds, by }: NewMember): Promise<MemberRow> {
  // Locked before the account, as in setOperator: `operator` must not change while the token is created.
  await lockUser(db, { id: user.id })
  await lockAccount(db, { id: accountId })
  if (await db.membership.findFirst({ where: { accountId, userId: user.id } })) throw new Fault('member_exists')
  const token = await insertToken(db, {
    accountId,
    name: `member ${user.id}`,
    scopes: scopesOf(role, await db.user.findUniqueOrThrow({ where: { id: user.id } })),
    projectIds,
    expiresAt: null,
    userId: user.id,
    hidden: true,
  })
  const id = newId('mem')
  const data = { id, accountId, userId: user.id, role, projectIds: [...projectIds], tokenId: token.id }
  await db.membership.create({ data: { ...data, createdAt: new Date() } })
  const row = await findMembership(db, accountId, id)
  const event = { accountId, projectId: null, type: 'member.joined', actor: by ?? user.id, subject: user.id } as const
  await append(db, [{ ...event, data: viewMember(row) }])
  return row
}
