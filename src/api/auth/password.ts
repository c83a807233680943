// /auth/password: signing in by a password, and its change.
import { ChangePassword, SignInByPassword } from '../../schemas/sign-in.ts'
import { beginStep, checkPassword, openByPassword, passwordMark, setPassword } from '../../services/people/index.ts'
import { knownOf, setKnown, setStep } from './browser-cookies.ts'
import type { AuthPlugin } from './plugin.ts'
import { originOf, requireSigned, sendSession } from './session.ts'

export const passwordRoutes: AuthPlugin = async (app, { deps, ways }) => {
  const { db, tokenDirectory } = deps
  const { hasher, tries, prove, expectGuess } = ways

  app.post(
    '/auth/password',
    { preParsing: expectGuess, schema: { body: SignInByPassword } },
    async (request, reply) => {
      const { email, password } = request.body
      const user = await tries.guess(request.ip, async (take) => {
        const admit = (browser: string | null) => take.person(email, browser)
        return checkPassword(db, hasher, { email, password, kept: knownOf(request), admit })
      })
      if (user.totpConfirmedAt) {
        setStep(reply, await beginStep(db, 'totp', { userId: user.id, password: passwordMark(user) }))
        return { next: 'totp' }
      }
      setKnown(reply, user)
      return sendSession(db, request, reply, await openByPassword(db, user, originOf(request)))
    },
  )

  app.put('/auth/password', { schema: { body: ChangePassword } }, async (request, reply) => {
    const session = await requireSigned(db, request)
    const { current, password } = request.body
    await prove(request, session, current)
    await tries.begin(request.ip)
    setKnown(reply, await setPassword(db, hasher, session, password))
    tokenDirectory.forgetPerson(session.userId)
    return reply.code(204).send(null)
  })
}
