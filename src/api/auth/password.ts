// /auth/password: signing in with a password, and changing it.
import { ChangePassword, SignInByPassword } from '../../schemas/sign-in.ts'
import {
  checkPassword,
  createStep,
  openPasswordSession,
  passwordDigest,
  setPassword,
} from '../../services/people/index.ts'
import { knownOf, setKnown, setStep } from './browser-cookies.ts'
import type { AuthPlugin } from './plugin.ts'
import { originOf, requireSession, sendSession } from './session.ts'

export const passwordRoutes: AuthPlugin = async (app, { deps, context }) => {
  const { db, tokenDirectory } = deps
  const { hasher, attempts, requireProof, checkGuessLimit } = context

  app.post(
    '/auth/password',
    { preParsing: checkGuessLimit, schema: { body: SignInByPassword } },
    async (request, reply) => {
      const { email, password } = request.body
      const user = await attempts.guess(request.ip, async (take) => {
        const checkAttempts = (browser: string | null) => take.person(email, browser)
        return checkPassword(db, hasher, { email, password, knownCookie: knownOf(request), checkAttempts })
      })
      if (user.totpConfirmedAt) {
        setStep(reply, await createStep(db, 'totp', { userId: user.id, password: passwordDigest(user) }))
        return { next: 'totp' }
      }
      setKnown(reply, user)
      return sendSession(db, request, reply, await openPasswordSession(db, user, originOf(request)))
    },
  )

  app.put('/auth/password', { schema: { body: ChangePassword } }, async (request, reply) => {
    const session = await requireSession(db, request)
    const { current, password } = request.body
    await requireProof(request, session, current)
    await attempts.begin(request.ip)
    setKnown(reply, await setPassword(db, hasher, session, password))
    tokenDirectory.forgetPerson(session.userId)
    return reply.code(204).send(null)
  })
}
