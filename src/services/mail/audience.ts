// The recipients of an email about an event: members who may see it, have proved their email and not muted the kind.
import type { Membership, Token, User } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { allows, type Scope } from '../identity/index.ts'
import { type MailKind, mailKinds } from './kinds.ts'
import type { MailEvent } from './occasions.ts'

type Member = Membership & { token: Pick<Token, 'scopes' | 'projectIds' | 'revokedAt'>; user: User }

/** The token of a membership carries the rights of the role. */
function maySee({ token }: Member, scope: Scope, projectId: string | null): boolean {
  const { scopes, projectIds, revokedAt } = token
  if (revokedAt !== null || !allows(scopes as Scope[], scope)) return false
  return projectIds.length === 0 || (projectId !== null && projectIds.includes(projectId))
}

/** The people who get an email of this kind about the event; `only` restricts them to one person. */
export async function audienceOf(db: Db, kind: MailKind, event: MailEvent, only?: string): Promise<User[]> {
  const people = await entitled(db, kind, event, only)
  // Nobody can send emails to a stranger by entering their address.
  return people.filter(({ mutedMails, emailProvedAt }) => emailProvedAt !== null && !mutedMails.includes(kind))
}

async function entitled(db: Db, kind: MailKind, event: MailEvent, only?: string): Promise<User[]> {
  const { scope, security } = mailKinds[kind]
  if (scope === null) return db.user.findMany({ where: { AND: [{ id: event.actor }, only ? { id: only } : {}] } })
  const members = await db.membership.findMany({
    where: { accountId: event.accountId, ...(only !== undefined && { userId: only }) },
    include: { user: true, token: { select: { scopes: true, projectIds: true, revokedAt: true } } },
    orderBy: { userId: 'asc' },
  })
  const isRecipient = (member: Member) =>
    maySee(member, scope, event.projectId) || (security && member.userId === event.actor)
  return members.filter(isRecipient).map(({ user }) => user)
}
