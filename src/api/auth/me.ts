// /auth/me and /auth/sessions: what people see and change about themselves.
import { AccountParams } from '../../schemas/operator.ts'
import { ChangeUser, InvitationParams, LookAtCode, SessionParams } from '../../schemas/people.ts'
import {
  answerInvitation,
  changeUser,
  endSession,
  leaveAccount,
  listInvitationsFor,
  listMemberships,
  listSessions,
  normalEmail,
  verifyEmail,
  viewSession,
  viewUser,
  withProjectNames,
} from '../../services/people/index.ts'
import { clearSession } from './cookie.ts'
import type { AuthPlugin } from './plugin.ts'
import { requireSession } from './session.ts'

export const meRoutes: AuthPlugin = async (app, { deps, context }) => {
  const { db, tokenDirectory, vault } = deps

  app.get('/auth/me', async (request) => {
    const session = await requireSession(db, request)
    const memberships = await withProjectNames(db, await listMemberships(db, session.userId))
    return {
      user: viewUser(session.user),
      memberships: memberships.map(({ account, role, projectIds, projects }) => ({
        account: { id: account.id, name: account.name },
        role,
        projects: projectIds.length > 0 ? projects : null,
      })),
      invitations: await listInvitationsFor(db, session.user),
      session: viewSession(session),
    }
  })

  app.patch('/auth/me', { schema: { body: ChangeUser } }, async (request) => {
    const session = await requireSession(db, request)
    const { current, ...change } = request.body
    // The identity provider signs people in by email address, so changing it needs proof.
    if (normalEmail(change.email ?? session.user.email) !== session.user.email) {
      await context.requireProof(request, session, current)
      await context.attempts.address(session.userId)
    }
    return { user: viewUser(await changeUser(db, session, change)) }
  })

  // The code is in the email sent to the address.
  app.post('/auth/me/proof', { schema: { body: LookAtCode } }, async (request) => {
    const { user } = await requireSession(db, request)
    return { user: viewUser(await verifyEmail(db, vault, user, request.body.code)) }
  })

  for (const [method, accept] of [['POST', true] as const, ['DELETE', false] as const]) {
    app.route({
      method,
      url: '/auth/me/invitations/:id',
      schema: { params: InvitationParams },
      async handler(request, reply) {
        const { userId } = await requireSession(db, request)
        await answerInvitation(db, userId, request.params.id, accept)
        return reply.code(204).send(null)
      },
    })
  }

  app.delete('/auth/me/accounts/:id', { schema: { params: AccountParams } }, async (request, reply) => {
    const { userId } = await requireSession(db, request)
    await leaveAccount(db, userId, request.params.id)
    tokenDirectory.forgetAccount(request.params.id)
    return reply.code(204).send(null)
  })

  app.get('/auth/sessions', async (request) => {
    const { id, userId } = await requireSession(db, request)
    const sessions = await listSessions(db, userId)
    return { sessions: sessions.map((one) => ({ ...viewSession(one), current: one.id === id })) }
  })

  app.delete('/auth/sessions/:id', { schema: { params: SessionParams } }, async (request, reply) => {
    const { id, userId } = await requireSession(db, request)
    await endSession(db, userId, request.params.id)
    tokenDirectory.forgetPerson(userId)
    if (request.params.id === id) clearSession(reply)
    return reply.code(204).send(null)
  })
}
