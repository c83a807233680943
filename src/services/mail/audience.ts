// Who is told of an event by mail: members who may see what it is about, have proved their address, and have not muted the kind.
import type { Membership, Token, User } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { allows, type Scope } from '../identity/index.ts'
import { type MailKind, mailKinds } from './kinds.ts'
import type { MailEvent } from './occasions.ts'

type Member = Membership & { token: Pick<Token, 'scopes' | 'projectIds' | 'revokedAt'>; user: User }

/** The token of a membership holds what the role allows, and is narrowed with it. */
function maySee({ token }: Member, scope: Scope, projectId: string | null): boolean {
  const { scopes, projectIds, revokedAt } = token
  if (revokedAt !== null || !allows(scopes as Scope[], scope)) return false
  return projectIds.length === 0 || (projectId !== null && projectIds.includes(projectId))
}

/** The people who get a mail of this kind about the event; `only`: if they are this one. */
export async function audienceOf(db: Db, kind: MailKind, event: MailEvent, only?: string): Promise<User[]> {
  const people = await entitled(db, kind, event, only)
  // Whoever writes a stranger's address has no mails sent there.
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
  const isTold = (member: Member) =>
    maySee(member, scope, event.projectId) || (security && member.userId === event.actor)
  return members.filter(isTold).map(({ user }) => user)
}
