// Members of an account: nobody grants or removes rights they lack, only owners change owners, and one owner remains.
import type { Static } from '@sinclair/typebox'
import type { Membership } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { type ChangeMember, roleNames } from '../../schemas/people.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, allows, lockAccount } from '../identity/index.ts'
import {
  endLine,
  lockCaller,
  narrowDescendants,
  requireScopes,
  resolveProjects,
  selectAncestors,
  withdrawInvitations,
  withRights,
} from '../tokens/index.ts'
import { findMembership, type MemberRow, type MemberView, viewMember, withProjectNames } from './memberships.ts'
import { type Role, roles, scopesOf } from './roles.ts'

export async function listMembers(db: Db, { accountId }: Actor, page: PageRequest): Promise<PageOf<MemberView>> {
  const { where, ...rest } = byId(page, 'mem')
  const found = await db.membership.findMany({ where: { ...where, accountId }, include: { user: true }, ...rest })
  return pageOf(await withProjectNames(db, found), page, viewMember, (row) => [row.id])
}

export async function findMember(db: Db, { accountId }: Actor, id: string): Promise<MemberView> {
  return viewMember(await findMembership(db, accountId, id))
}

/** The caller who changes members: its current rights, and whether it may change owners. */
export type Manager = { actor: Actor; isOwner: boolean }

/** Locks the account until the transaction ends, so the last two owners can't both leave at once. */
export async function lockManager(db: Db, actor: Actor): Promise<Manager> {
  const caller = await lockCaller(db, actor)
  const now = withRights(actor, caller, 'members:write')
  const line = (await selectAncestors(db, { id: caller.id })).map(({ id }) => id)
  const member = await db.membership.findFirst({ where: { tokenId: { in: line } }, select: { role: true } })
  // A token that descends from no member's token was created by the operator for the account itself.
  return { actor: now, isOwner: member ? member.role === 'owner' : now.scopes.includes('*') }
}

/** Throws unless the manager has every right of the role. */
export function requireRole({ actor, isOwner }: Manager, role: Role, verb: string): void {
  requireScopes(actor, roles[role].scopes, `${verb} a member with the role ${role}`)
  if (role === 'owner' && !isOwner) throw new Fault('owner_required')
}

/** Resolves the projects to which a member with the role is limited. */
export async function projectsOf(
  db: Db,
  actor: Actor,
  role: Role,
  named: (string | undefined)[] | null,
): Promise<string[]> {
  if (named === null) return []
  if (!roles[role].byProject) throw invalidField('#/projects', 'not_allowed', `cannot be limited for the role ${role}`)
  return resolveProjects(db, actor, named)
}

async function requireOtherOwner(db: Db, { accountId, id, role }: MemberRow): Promise<void> {
  if (role !== 'owner') return
  const others = await db.membership.count({ where: { accountId, role: 'owner', id: { not: id } } })
  if (others === 0) throw new Fault('last_owner')
}

type Input = Static<typeof ChangeMember>
export type MemberChange = { id: string; input: Input; precondition(view: MemberView): void }

/** Changes a member's role or projects. Tokens that descend from the member's token are narrowed to match. */
export async function changeMember(db: Db, actor: Actor, change: MemberChange): Promise<MemberView> {
  const { id, input, precondition } = change
  return inTransaction(db, async (db) => {
    await findMembership(db, actor.accountId, id)
    const manager = await lockManager(db, actor)
    const before = await findMembership(db, actor.accountId, id)
    precondition(viewMember(before))
    requireRole(manager, before.role as Role, 'change')
    const role = input.role ?? (before.role as Role)
    requireRole(manager, role, 'make')
    const current = roles[role].byProject ? before.projectIds : []
    const projectIds =
      input.projects === undefined ? current : await projectsOf(db, manager.actor, role, input.projects)
    if (role !== 'owner') await requireOtherOwner(db, before)
    await db.membership.update({ where: { id: before.id }, data: { role, projectIds } })
    const scopes = scopesOf(role, before.user)
    await db.token.update({ where: { id: before.tokenId }, data: { scopes, projectIds } })
    await narrowDescendants(db, actor, before.tokenId)
    await revokeInvitations(db, before, role)
    const after = viewMember(await findMembership(db, actor.accountId, id))
    const subject = before.userId
    await append(db, [eventOf(actor, 'member.updated', { subject, projectId: null, data: after })])
    return after
  })
}

export type MemberRemoval = { id: string; precondition(view: MemberView): void }

/** Removes a person from the account, with every token they created and every invitation they sent. */
export async function removeMember(db: Db, actor: Actor, { id, precondition }: MemberRemoval): Promise<void> {
  await inTransaction(db, async (db) => {
    await findMembership(db, actor.accountId, id)
    const manager = await lockManager(db, actor)
    const member = await findMembership(db, actor.accountId, id)
    precondition(viewMember(member))
    requireRole(manager, member.role as Role, 'remove')
    await endMembership(db, actor, member)
  })
}

/** Removes the person from an account at their own request, which every role may make. */
export async function leaveAccount(db: Db, userId: string, accountId: string): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockAccount(db, { id: accountId })
    const member = await findMembership(db, accountId, userId)
    await endMembership(db, { accountId, userId, tokenId: member.tokenId, scopes: [], projectIds: null }, member)
  })
}

async function endMembership(db: Db, actor: Actor, member: MemberRow): Promise<void> {
  await requireOtherOwner(db, member)
  await revokeInvitations(db, member, null)
  await endLine(db, actor, { id: member.tokenId, itself: true })
  await db.membership.delete({ where: { id: member.id } })
  const data = viewMember(member)
  await append(db, [eventOf(actor, 'member.removed', { subject: member.userId, projectId: null, data })])
}

/** Revokes tokens, device sign-ins and invitations created in the person's name in every account. Memberships stay. */
export async function revokeGrantsOf(db: Db, userId: string): Promise<void> {
  for (const member of await db.membership.findMany({ where: { userId }, orderBy: { accountId: 'asc' } })) {
    const { id: membershipId, accountId, tokenId } = member
    await lockAccount(db, { id: accountId })
    await db.deviceLogin.deleteMany({ where: { membershipId } })
    await revokeInvitations(db, member, null)
    const actor = { accountId, userId, tokenId, scopes: [], projectIds: null }
    await endLine(db, actor, { id: tokenId, itself: false })
  }
}

/** Revokes the invitations that the person sent, in the console or with a token, and may not send in their new role. */
async function revokeInvitations(db: Db, { userId, tokenId: id }: Membership, newRole: Role | null): Promise<void> {
  const maySend = newRole !== null && allows(roles[newRole].scopes, 'members:write')
  const lost = maySend ? roleNames.filter((role) => role === 'owner' && newRole !== 'owner') : roleNames
  await withdrawInvitations(db, { id, userId, roles: lost })
}
