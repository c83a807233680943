// /auth/token and /auth/session: the console's token, and signing out.
import { Fault } from '../../platform/errors.ts'
import { MintToken } from '../../schemas/people.ts'
import { endSession, mintToken } from '../../services/people/index.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import { clearSession } from './cookie.ts'
import type { AuthPlugin } from './plugin.ts'
import { currentSession, requireSession } from './session.ts'

const tokensPerMinute = 60

export const sessionRoutes: AuthPlugin = async (app, { deps }) => {
  const { db, tokenDirectory, sharedLimits: limits } = deps
  const tokensPerPerson = createRateLimit(tokensPerMinute, limits && { limits, kind: 'console' })

  app.post('/auth/token', { schema: { body: MintToken } }, async (request) => {
    const session = await requireSession(db, request)
    const { exceeded, resetSeconds } = await tokensPerPerson.take(session.userId)
    if (exceeded) throw tooMany(`More than ${tokensPerMinute} tokens in a minute.`, resetSeconds)
    return mintToken(db, session, request.body.account)
  })

  app.delete('/auth/session', async (request, reply) => {
    const session = await currentSession(db, request)
    clearSession(reply)
    if (!session) throw new Fault('not_signed_in')
    await endSession(db, session.userId, session.id)
    tokenDirectory.forgetPerson(session.userId)
    return reply.code(204).send(null)
  })
}
