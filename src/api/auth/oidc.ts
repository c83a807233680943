// /auth/oidc: sends the browser to the identity provider, and signs in who comes back. Browsers go there by themselves,
// so what fails ends at a page: `/sign-in?error=<code>`.
import type { FastifyReply } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { beginStep, endSession, openSession, personOf, takeStep } from '../../services/people/index.ts'
import { toFault } from '../http/answers/problem.ts'
import { clearStep, setStep, stepOf } from './browser-cookies.ts'
import { setSession } from './cookie.ts'
import type { AuthPlugin } from './plugin.ts'
import { refuseOtherSites } from './same-origin.ts'
import { findSigned, originOf } from './session.ts'

export const oidcRoutes: AuthPlugin = async (app, { deps, ways }) => {
  const { db, config, log } = deps
  const { provider, tries, party } = ways
  if (!provider) return

  // The address holds a code and a state; nobody behind it needs to see them.
  app.addHook('onRequest', async (_request, reply) => void reply.header('referrer-policy', 'no-referrer'))

  function explain(error: unknown, requestId: string, reply: FastifyReply): FastifyReply {
    const fault = toFault(error)
    // Its message alone: the rest may hold what the provider says about the person.
    const { message: reason } = (fault.cause ?? fault) as Error
    log.info({ requestId, code: fault.code, reason }, 'a sign-in by the identity provider failed')
    return reply.redirect(`/sign-in?error=${fault.code}`, 303)
  }

  app.get('/auth/oidc', async (request, reply) => {
    refuseOtherSites(request)
    try {
      await tries.begin(request.ip)
      const { url, checks } = await provider.begin()
      const signed = await findSigned(db, request)
      const before = signed && { id: signed.id, userId: signed.userId }
      setStep(reply, await beginStep(db, 'oidc', { ...checks, before }), 'Lax')
      return reply.redirect(url, 303)
    } catch (error) {
      return explain(error, request.id, reply)
    }
  })

  // From another site, as it must be. The step in the cookie says that this browser went there.
  app.get('/auth/oidc/callback', async (request, reply) => {
    try {
      const checks = await takeStep(db, 'oidc', stepOf(request))
      const query = new URL(request.url, party.origin).searchParams
      if (query.get('state') !== checks.state) throw new Fault('sign_in_failed')
      const identity = await provider.finish(query, checks)
      const { id: userId } = await personOf(db, identity, config.oidc!.allowSignup)
      await tries.signIn(userId)
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
