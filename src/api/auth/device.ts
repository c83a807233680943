// /auth/device: signs a program in, such as the command line, after a person has approved it (as in RFC 8628).

import { clientOf } from '../../platform/http/client-address.ts'
import { AnswerDevice, BeginDevice, LookAtDevice, PollDevice, RevokeHeld } from '../../schemas/device.ts'
import { answerDevice, beginDevice, deviceSeconds, lookAtDevice, takeDeviceToken } from '../../services/people/index.ts'
import { revokeOwnToken } from '../../services/tokens/index.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import type { AuthPlugin } from './plugin.ts'
import { requireSigned } from './session.ts'

// An office that signs in many programs at once asks every five seconds for each.
const pollsPerMinute = 600
// These two are for programs: they read no cookie, so that no other site gains anything by sending them.
const forPrograms = { anyOrigin: true } as const

export const deviceRoutes: AuthPlugin = async (app, { deps, ways }) => {
  const { db, config, tokenDirectory, sharedLimits: limits } = deps
  const polls = createRateLimit(pollsPerMinute, limits && { limits, kind: 'device' })

  app.post('/auth/device', { config: forPrograms, schema: { body: BeginDevice } }, async (request) => {
    await ways.tries.begin(request.ip)
    const { deviceCode, userCode, interval } = await beginDevice(db, { ...request.body, address: request.ip })
    const page = `${new URL(config.baseUrl).origin}/device`
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: page,
      verification_uri_complete: `${page}?code=${userCode}`,
      expires_in: deviceSeconds,
      interval,
    }
  })

  app.post('/auth/device/token', { config: forPrograms, schema: { body: PollDevice } }, async (request) => {
    const { exceeded, resetSeconds } = await polls.take(clientOf(request.ip))
    if (exceeded) throw tooMany('Too many token requests from this IP address.', resetSeconds)
    const { secret, id, scopes, expiresAt, account } = await takeDeviceToken(db, request.body.device_code)
    const expires_in = Math.floor((expiresAt.getTime() - Date.now()) / 1000)
    return { access_token: secret, token_type: 'Bearer', expires_in, scope: scopes.join(' '), id, account }
  })

  // As in RFC 7009: a token that is of no use already is no error, and nothing is told of it.
  app.post('/auth/device/revoke', { config: forPrograms, schema: { body: RevokeHeld } }, async (request, reply) => {
    const { exceeded, resetSeconds } = await polls.take(clientOf(request.ip))
    if (exceeded) throw tooMany('Too many token requests from this IP address.', resetSeconds)
    const held = await tokenDirectory.find(request.body.token, true)
    if (held && held.revokedAt === null && !(held.expiresAt && held.expiresAt <= new Date())) {
      await revokeOwnToken(db, { ...held, tokenId: held.id })
      tokenDirectory.forgetAccount(held.accountId)
    }
    return reply.code(204).send(null)
  })

  // Whoever is signed in could approve the program of somebody else by a guess.
  app.post('/auth/device/look', { schema: { body: LookAtDevice } }, async (request) => {
    const { userId } = await requireSigned(db, request)
    return ways.tries.guess(request.ip, async (take) => {
      await take.person(`device of ${userId}`, null)
      return lookAtDevice(db, request.body.userCode)
    })
  })

  app.post('/auth/device/answer', { schema: { body: AnswerDevice } }, async (request, reply) => {
    const session = await requireSigned(db, request)
    await ways.tries.guess(request.ip, async (take) => {
      await take.person(`device of ${session.userId}`, null)
      await answerDevice(db, session, request.body)
    })
    return reply.code(204).send(null)
  })
}
