// /auth/oidc: redirects the browser to the identity provider and signs the person in on return. Browsers navigate here,
// so errors redirect to `/sign-in?error=<code>`.
import type { FastifyReply } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { consumeStep, createStep, endSession, findOrAdmitUser, openSession } from '../../services/people/index.ts'
import { toFault } from '../http/responses/problem.ts'
import { clearStep, setStep, stepOf } from './browser-cookies.ts'
import { setSession } from './cookie.ts'
import type { AuthPlugin } from './plugin.ts'
import { refuseOtherSites } from './same-origin.ts'
import { currentSession, originOf } from './session.ts'

export const oidcRoutes: AuthPlugin = async (app, { deps, context }) => {
  const { db, config, log } = deps
  const { provider, attempts, party } = context
  if (!provider) return

  // The URL contains a code and a state, which must not leak in a Referer header.
  app.addHook('onRequest', async (_request, reply) => void reply.header('referrer-policy', 'no-referrer'))

  function explain(error: unknown, requestId: string, reply: FastifyReply): FastifyReply {
    const fault = toFault(error)
    // Log only the message: the rest may contain what the provider says about the person.
    const { message: reason } = (fault.cause ?? fault) as Error
    log.info({ requestId, code: fault.code, reason }, 'a sign-in by the identity provider failed')
    return reply.redirect(`/sign-in?error=${fault.code}`, 303)
  }

  app.get('/auth/oidc', async (request, reply) => {
    refuseOtherSites(request)
    try {
      await attempts.begin(request.ip)
      const { url, checks } = await provider.begin()
      const signed = await currentSession(db, request)
      const before = signed && { id: signed.id, userId: signed.userId }
      setStep(reply, await createStep(db, 'oidc', { ...checks, before }), 'Lax')
      return reply.redirect(url, 303)
    } catch (error) {
      return explain(error, request.id, reply)
    }
  })

  // This request comes from another site by design. The step cookie proves that this browser started the sign-in.
  app.get('/auth/oidc/callback', async (request, reply) => {
    try {
      const checks = await consumeStep(db, 'oidc', stepOf(request))
      const query = new URL(request.url, party.origin).searchParams
      if (query.get('state') !== checks.state) throw new Fault('sign_in_failed')
      const identity = await provider.finish(query, checks)
      const { id: userId } = await findOrAdmitUser(db, identity, config.oidc!.allowSignup)
      await attempts.signIn(userId)
      const { secret } = await openSession(db, { userId, method: 'oidc', ...originOf(request) })
      const { before } = checks
      if (before) await endSession(db, before.userId, before.id).catch(() => {})
      clearStep(reply)
      setSession(reply, secret)
      return reply.redirect('/', 303)
    } catch (error) {
      return explain(error, request.id, reply)
    }
  })
}
