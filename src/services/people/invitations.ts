// Invitations: a link that makes its holder a member of the account. Only the response that creates it contains it.
import type { Static } from '@sinclair/typebox'
import type { Invitation, User } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { newSecret } from '../../platform/secrets/secrets.ts'
import {
  type CreateInvitation,
  Invitation as InvitationSchema,
  type InvitationWithSecret,
} from '../../schemas/people.ts'
import { countMembers } from '../accounts/index.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, actorName, lockAccount } from '../identity/index.ts'
import { checkQuota } from '../quotas/index.ts'
import { hashOf, setupUrl } from './links.ts'
import { lockManager, projectsOf, requireRole } from './members.ts'
import { addMember, withProjectNames } from './memberships.ts'
import type { Role } from './roles.ts'
import { lockUser } from './sign-in-statements.ts'
import { normalEmail } from './users.ts'

const lifeMs = 7 * 24 * 60 * 60_000

export type InvitationView = Static<typeof InvitationSchema>

const viewRow = viewOf(InvitationSchema)

function viewInvitation(row: Invitation & { projects: string[] }): InvitationView {
  return viewRow(row, { projects: row.projectIds.length > 0 ? row.projects : null })
}

export const pending = () => ({ acceptedAt: null, expiresAt: { gt: new Date() } })

/** Invites an email; this revokes an earlier invitation of the same email. */
export async function createInvitation(
  db: Db,
  actor: Actor,
  baseUrl: string,
  input: Static<typeof CreateInvitation>,
): Promise<Static<typeof InvitationWithSecret>> {
  return inTransaction(db, async (db) => {
    const manager = await lockManager(db, actor)
    const { accountId } = actor
    const { role, projects = null } = input
    const email = normalEmail(input.email)
    requireRole(manager, role, 'make')
    const projectIds = await projectsOf(db, manager.actor, role, projects)
    if (await db.membership.findFirst({ where: { accountId, user: { email } } })) throw new Fault('member_exists')
    await db.invitation.deleteMany({ where: { accountId, email, acceptedAt: null } })
    await checkQuota(db, accountId, 'members', await countMembers(db, accountId))
    const [secret, now] = [newSecret(), new Date()]
    const data = { id: newId('inv'), accountId, email, role, projectIds, invitedBy: actorName(actor), createdAt: now }
    const expiresAt = new Date(now.getTime() + lifeMs)
    const created = await db.invitation.create({ data: { ...data, expiresAt, hash: hashOf(secret) } })
    const [row] = await withProjectNames(db, [created])
    const view = viewInvitation(row!)
    await append(db, [eventOf(actor, 'member.invited', { subject: view.id, projectId: null, data: view })])
    return { ...view, url: setupUrl(baseUrl, secret), secret }
  })
}

/** The account's pending invitations. */
export async function listInvitations(db: Db, actor: Actor, page: PageRequest): Promise<PageOf<InvitationView>> {
  const { where, ...rest } = byId(page, 'inv')
  const found = await db.invitation.findMany({ where: { accountId: actor.accountId, ...pending(), ...where }, ...rest })
  return pageOf(await withProjectNames(db, found), page, viewInvitation, (row) => [row.id])
}

export async function findInvitation(db: Db, actor: Actor, id: string): Promise<InvitationView> {
  const found = await db.invitation.findFirst({ where: { accountId: actor.accountId, ...pending(), id } })
  if (!found) throw new Fault('not_found', `There is no invitation ${id}.`)
  const [row] = await withProjectNames(db, [found])
  return viewInvitation(row!)
}

export type InvitationRemoval = { id: string; precondition(view: InvitationView): void }

/** Deletes a pending invitation, which makes its link invalid. */
export async function deleteInvitation(db: Db, actor: Actor, { id, precondition }: InvitationRemoval): Promise<void> {
  await inTransaction(db, async (db) => {
    await findInvitation(db, actor, id)
    const manager = await lockManager(db, actor)
    const found = await findInvitation(db, actor, id)
    precondition(found)
    requireRole(manager, found.role, 'revoke the invitation of')
    await db.invitation.deleteMany({ where: { id, accountId: actor.accountId, acceptedAt: null } })
  })
}

const maxShown = 20

/** The pending invitations of a person from every account. Only the proved owner of an email sees them. */
export async function listInvitationsFor(db: Db, { email, emailProvedAt }: User) {
  if (!emailProvedAt) return []
  const query = { include: { account: true }, orderBy: { id: 'asc' }, take: maxShown } as const
  const found = await db.invitation.findMany({ where: { email, ...pending() }, ...query })
  return found.map(({ id, account, role, expiresAt }) => ({
    id,
    account: { id: account.id, name: account.name },
    role,
    expiresAt: expiresAt.toISOString(),
  }))
}

/** Accepts or declines an invitation without its link. The person must have proved the invited email. */
export async function answerInvitation(db: Db, userId: string, id: string, accept: boolean): Promise<void> {
  await inTransaction(db, async (db) => {
    // Lock order everywhere: person, account, invitation. A different order could deadlock.
    await lockUser(db, { id: userId })
    const user = await db.user.findUniqueOrThrow({ where: { id: userId } })
    const where = { id, email: user.email, ...pending() }
    const found = user.emailProvedAt && (await db.invitation.findFirst({ where }))
    if (found) await lockAccount(db, { id: found.accountId })
    // Two concurrent answers: only one changes the row.
    const { count } = !found
      ? { count: 0 }
      : accept
        ? await db.invitation.updateMany({ where, data: { acceptedAt: new Date() } })
        : await db.invitation.deleteMany({ where })
    if (!found || count === 0) throw new Fault('not_found', `You have no invitation ${id}.`)
    const { accountId, role, projectIds } = found
    if (accept) await addMember(db, { accountId, user, role: role as Role, projectIds })
  })
}
