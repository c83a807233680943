// /auth/passkeys: signing in with a passkey, and managing one's own passkeys.
import { CreatePasskey, PasskeyParams, Proof, RenamePasskey, SignInByPasskey } from '../../schemas/sign-in.ts'
import {
  createPasskey,
  deletePasskey,
  listPasskeys,
  passkeyOptions,
  registrationOptions,
  renamePasskey,
  signInByPasskey,
  viewPasskey,
} from '../../services/people/index.ts'
import { clearStep, setStep, stepOf } from './browser-cookies.ts'
import type { AuthPlugin } from './plugin.ts'
import { requireSession, signIn } from './session.ts'

// Attestations can be long.
const credentialBytes = 64 << 10

export const passkeyRoutes: AuthPlugin = async (app, { deps, context }) => {
  const { db, config, log } = deps
  const { attempts, party, requireProof, checkGuessLimit } = context

  app.post('/auth/passkeys/options', async (request, reply) => {
    await attempts.begin(request.ip)
    const { options, step } = await passkeyOptions(db, party)
    setStep(reply, step)
    return options
  })

  const bodyLimit = credentialBytes
  const signingIn = { bodyLimit, preParsing: checkGuessLimit, schema: { body: SignInByPasskey } }
  app.post('/auth/passkeys/sign-in', signingIn, async (request, reply) => {
    const user = await attempts.guess(request.ip, () =>
      signInByPasskey(db, party, { step: stepOf(request), response: request.body.response }, log),
    )
    await attempts.signIn(user.id)
    clearStep(reply)
    return signIn(db, request, reply, { userId: user.id, method: 'passkey' })
  })

  app.post('/auth/passkeys/register/options', { schema: { body: Proof } }, async (request, reply) => {
    const session = await requireSession(db, request)
    await requireProof(request, session, request.body?.current)
    await attempts.begin(request.ip)
    const { options, step } = await registrationOptions(db, party, session.user)
    setStep(reply, step)
    return options
  })

  app.post('/auth/passkeys', { bodyLimit, schema: { body: CreatePasskey } }, async (request, reply) => {
    const session = await requireSession(db, request)
    const { name, response } = request.body
    const passkey = await createPasskey(db, party, session, { name, response, step: stepOf(request) })
    clearStep(reply)
    return reply.code(201).send(viewPasskey(passkey))
  })

  app.get('/auth/passkeys', async (request) => {
    const { userId } = await requireSession(db, request)
    return { passkeys: (await listPasskeys(db, userId)).map(viewPasskey) }
  })

  app.patch('/auth/passkeys/:id', { schema: { params: PasskeyParams, body: RenamePasskey } }, async (request) => {
    const { userId } = await requireSession(db, request)
    return viewPasskey(await renamePasskey(db, userId, request.params.id, request.body.name))
  })

  app.delete('/auth/passkeys/:id', { schema: { params: PasskeyParams, body: Proof } }, async (request, reply) => {
    const session = await requireSession(db, request)
    await requireProof(request, session, request.body?.current)
    await deletePasskey(db, session, { id: request.params.id, oidc: config.oidc !== null })
    return reply.code(204).send(null)
  })
}
