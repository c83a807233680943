// People: who they are. What they may do is said by their memberships.
import type { Session, User } from '../../generated/client.ts'
import { type Database, type Db, violation } from '../../platform/database/database.ts'
import { invalidField } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { append } from '../events/index.ts'
import { viewMember, withProjectNames } from './memberships.ts'
import { holdSession } from './sessions.ts'

/** Addresses are compared in lower case; their form is checked by the schema. */
export function normalEmail(text: string): string {
  return text.toLowerCase()
}

/** What a person is called who has not said. */
export function nameFrom(email: string): string {
  return email.slice(0, email.lastIndexOf('@'))
}

export function viewUser(row: User) {
  return {
    id: row.id,
    email: row.email,
    emailProved: row.emailProvedAt !== null,
    name: row.name,
    operator: row.operator,
    totp: row.totpConfirmedAt !== null,
    password: row.passwordHash !== null,
    mutedMails: row.mutedMails,
    createdAt: row.createdAt.toISOString(),
  }
}

export type UserView = ReturnType<typeof viewUser>

export function findUserByEmail(db: Db, email: string): Promise<User | null> {
  return db.user.findUnique({ where: { email: normalEmail(email) } })
}

/** `proved`: it is certain that the address is the person's own. */
export type NewUser = { email: string; name?: string | undefined; operator?: boolean; proved?: boolean }

/** A new person; an address that somebody has already is refused. */
export async function createUser(db: Db, { email, name, operator = false, proved = false }: NewUser): Promise<User> {
  const normal = normalEmail(email)
  const now = new Date()
  // Looked up first: inside a transaction a violation would end it.
  if (await findUserByEmail(db, normal)) throw emailTaken()
  const data = { id: newId('usr'), email: normal, name: name ?? nameFrom(normal), operator, createdAt: now }
  return refusingTaken(() => db.user.create({ data: { ...data, emailProvedAt: proved ? now : null } }))
}

const emailTaken = () => invalidField('#/email', 'taken', 'cannot be used')

async function refusingTaken(write: () => Promise<User>): Promise<User> {
  try {
    return await write()
  } catch (error) {
    if (violation(error)?.kind === 'unique') throw emailTaken()
    throw error
  }
}

export type UserChange = { name?: string; email?: string; mutedMails?: string[] }

/** An address that is not proved, also the same one again, gets a mail that proves it. */
export async function changeUser(
  db: Database,
  session: Pick<Session, 'id' | 'userId'>,
  { email, ...rest }: UserChange,
): Promise<User> {
  return db.$transaction(async (db: Db) => {
    await holdSession(db, session)
    const found = await db.user.findUniqueOrThrow({ where: { id: session.userId } })
    const isNew = email !== undefined && normalEmail(email) !== found.email
    const data = { ...rest, ...(isNew && { email: normalEmail(email), emailProvedAt: null }) }
    const user = await refusingTaken(() => db.user.update({ where: { id: found.id }, data }))
    if (email !== undefined && user.emailProvedAt === null) await tellAccounts(db, user)
    return user
  })
}

/** Frees the address of a person who has not proved it; theirs is one that nobody has, until they write another. */
export async function takeAddress(db: Db, { id, email }: User): Promise<void> {
  const [user] = await db.user.updateManyAndReturn({
    where: { id, email, emailProvedAt: null },
    data: { email: `${id}@address.invalid` },
  })
  if (user) await tellAccounts(db, user, 'system')
}

/** Every account of the person hears of their address. */
async function tellAccounts(db: Db, user: User, actor = user.id): Promise<void> {
  const found = await db.membership.findMany({ where: { userId: user.id }, orderBy: { id: 'asc' } })
  const rows = await withProjectNames(db, found)
  await append(
    db,
    rows.map((row) => ({
      ...{ accountId: row.accountId, projectId: null, actor, subject: user.id },
      type: 'member.updated' as const,
      data: viewMember({ ...row, user }),
    })),
  )
}
