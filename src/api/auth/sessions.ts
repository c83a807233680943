// /auth/me, /auth/token, /auth/session: who is signed in, the token of the console, signing out.
import { Fault } from '../../platform/errors.ts'
import { MintToken } from '../../schemas/people.ts'
import { listMemberships, mintToken } from '../../services/people/console-tokens.ts'
import { withProjectNames } from '../../services/people/memberships.ts'
import { endSession, viewSession } from '../../services/people/sessions.ts'
import { viewUser } from '../../services/people/users.ts'
import { createRateLimit, tooMany } from '../http/rate-limit.ts'
import { clearSession } from './cookie.ts'
import type { AuthPlugin } from './plugin.ts'
import { findSigned, requireSigned } from './session.ts'

const tokensPerMinute = 60

export const sessionRoutes: AuthPlugin = async (app, { deps }) => {
  const { db, tokenDirectory, sharedLimits: limits } = deps
  const tokensPerPerson = createRateLimit(tokensPerMinute, limits && { limits, kind: 'console' })

  app.post('/auth/token', { schema: { body: MintToken } }, async (request) => {
    const session = await requireSigned(db, request)
    const { exceeded, resetSeconds } = await tokensPerPerson.take(session.userId)
    if (exceeded) throw tooMany(`More than ${tokensPerMinute} tokens in a minute.`, resetSeconds)
    return mintToken(db, session, request.body.account)
  })

  app.get('/auth/me', async (request) => {
    const session = await requireSigned(db, request)
    const memberships = await withProjectNames(db, await listMemberships(db, session.userId))
    return {
      user: viewUser(session.user),
      memberships: memberships.map(({ account, role, projectIds, projects }) => ({
        account: { id: account.id, name: account.name },
        role,
        projects: projectIds.length > 0 ? projects : null,
      })),
      session: viewSession(session),
    }
  })

  app.delete('/auth/session', async (request, reply) => {
    const session = await findSigned(db, request)
    clearSession(reply)
    if (!session) throw new Fault('not_signed_in')
    await endSession(db, session.userId, session.id)
    tokenDirectory.forgetPerson(session.userId)
    return reply.code(204).send(null)
  })
}
