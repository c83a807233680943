// /auth/password: signing in by a password, and its change.
import { ChangePassword, SignInByPassword } from '../../schemas/sign-in.ts'
import { checkPassword, passwordMark, setPassword } from '../../services/people/passwords.ts'
import { beginStep } from '../../services/people/steps.ts'
import { knownOf, setKnown, setStep } from './browser-cookies.ts'
import type { AuthPlugin } from './plugin.ts'
import { requireSigned, signIn } from './session.ts'

export const passwordRoutes: AuthPlugin = async (app, { deps, ways }) => {
  const { db, tokenDirectory } = deps
  const { hasher, tries, prove } = ways

  app.post('/auth/password', { schema: { body: SignInByPassword } }, async (request, reply) => {
    const { email, password } = request.body
    const user = await tries.guess(async (take) => {
      await take.address(request.ip)
      const admit = (browser: string | null) => take.person(email, browser)
      return checkPassword(db, hasher, { email, password, kept: knownOf(request), admit })
    })
    if (user.totpConfirmedAt) {
      setStep(reply, await beginStep(db, 'totp', { userId: user.id, password: passwordMark(user) }))
      return { next: 'totp' }
    }
    setKnown(reply, user.passwordHash!)
    return signIn(db, request, reply, { userId: user.id, method: 'password' })
  })

  app.put('/auth/password', { schema: { body: ChangePassword } }, async (request, reply) => {
    const session = await requireSigned(db, request)
    const { current, password } = request.body
    await prove(session, current)
    setKnown(reply, await setPassword(db, hasher, session, password))
    tokenDirectory.forgetPerson(session.userId)
    return reply.code(204).send(null)
  })
}
