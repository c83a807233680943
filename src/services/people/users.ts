// People: their names and emails. Memberships define their rights.
import type { Session, User } from '../../generated/client.ts'
import { type Database, type Db, violation } from '../../platform/database/database.ts'
import { invalidField } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { append } from '../events/index.ts'
import { viewMember, withProjectNames } from './memberships.ts'
import { lockSession } from './sessions.ts'

/** Emails are compared in lower case; the schema checks their syntax. */
export function normalEmail(text: string): string {
  return text.toLowerCase()
}

/** The default name of a person. */
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

/** `proved`: the email certainly belongs to the person. */
export type NewUser = { email: string; name?: string | undefined; operator?: boolean; proved?: boolean }

/** Creates a person. Throws if the email is taken. */
export async function createUser(db: Db, { email, name, operator = false, proved = false }: NewUser): Promise<User> {
  const normal = normalEmail(email)
  const now = new Date()
  // Checked first because a unique violation would abort the caller's transaction.
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

/** Changes a person. Any unproved email in the input, even an unchanged one, gets a new verification email. */
export async function changeUser(
  db: Database,
  session: Pick<Session, 'id' | 'userId'>,
  { email, ...rest }: UserChange,
): Promise<User> {
  return db.$transaction(async (db: Db) => {
    await lockSession(db, session)
    const found = await db.user.findUniqueOrThrow({ where: { id: session.userId } })
    const isNew = email !== undefined && normalEmail(email) !== found.email
    const data = { ...rest, ...(isNew && { email: normalEmail(email), emailProvedAt: null }) }
    const user = await refusingTaken(() => db.user.update({ where: { id: found.id }, data }))
    if (email !== undefined && user.emailProvedAt === null) await appendMemberUpdated(db, user)
    return user
  })
}

/** Frees an email that a person has not proved. They get a placeholder until they enter another one. */
export async function releaseEmail(db: Db, { id, email }: User): Promise<void> {
  const [user] = await db.user.updateManyAndReturn({
    where: { id, email, emailProvedAt: null },
    data: { email: `${id}@address.invalid` },
  })
  if (user) await appendMemberUpdated(db, user, 'system')
}

/** Appends a `member.updated` event to each account of the person. */
async function appendMemberUpdated(db: Db, user: User, actor = user.id): Promise<void> {
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
