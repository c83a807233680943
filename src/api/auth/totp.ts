// /auth/totp: one-time passwords as the second step of a sign-in, and turning them on and off.
import { OneTimeCode, Proof } from '../../schemas/sign-in.ts'
import {
  completeWithCode,
  confirmTotp,
  countRecoveryCodes,
  openPasswordSession,
  removeTotp,
  renewRecoveryCodes,
  setUpTotp,
} from '../../services/people/index.ts'
import { clearStep, knownOf, setKnown, stepOf } from './browser-cookies.ts'
import type { AuthPlugin } from './plugin.ts'
import { originOf, requireSession, sendSession } from './session.ts'

export const totpRoutes: AuthPlugin = async (app, { deps, context }) => {
  const { db, vault } = deps
  const { attempts, requireProof, checkGuessLimit } = context

  app.post('/auth/totp', { preParsing: checkGuessLimit, schema: { body: OneTimeCode } }, async (request, reply) => {
    const user = await attempts.guess(request.ip, async (take) => {
      const input = { code: request.body.code, step: stepOf(request), knownCookie: knownOf(request) }
      return completeWithCode(db, vault, { ...input, checkAttempts: take.code })
    })
    clearStep(reply)
    setKnown(reply, user)
    return sendSession(db, request, reply, await openPasswordSession(db, user, originOf(request)))
  })

  app.get('/auth/totp', async (request) => {
    const { user } = await requireSession(db, request)
    return { enabled: user.totpConfirmedAt !== null, recoveryCodes: await countRecoveryCodes(db, user.id) }
  })

  app.post('/auth/totp/setup', { schema: { body: Proof } }, async (request) => {
    const session = await requireSession(db, request)
    await requireProof(request, session, request.body?.current)
    return setUpTotp(db, vault, session.user)
  })

  app.post('/auth/totp/confirm', { schema: { body: OneTimeCode } }, async (request) => {
    const session = await requireSession(db, request)
    return { recoveryCodes: await confirmTotp(db, vault, session, request.body.code) }
  })

  app.post('/auth/totp/recovery-codes', { schema: { body: Proof } }, async (request) => {
    const session = await requireSession(db, request)
    await requireProof(request, session, request.body?.current)
    return { recoveryCodes: await renewRecoveryCodes(db, session) }
  })

  app.delete('/auth/totp', { schema: { body: Proof } }, async (request, reply) => {
    const session = await requireSession(db, request)
    await requireProof(request, session, request.body?.current)
    await removeTotp(db, session)
    return reply.code(204).send(null)
  })
}
