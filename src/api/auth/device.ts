// /auth/device: signs in a program, such as the CLI, after a person has approved it (RFC 8628).

import { clientOf } from '../../platform/http/client-address.ts'
import { AnswerDevice, BeginDevice, LookAtDevice, PollDevice, RevokeHeld } from '../../schemas/device.ts'
import {
  answerDeviceLogin,
  deviceSeconds,
  findDeviceLogin,
  redeemDeviceCode,
  startDeviceLogin,
} from '../../services/people/index.ts'
import { revokeOwnToken } from '../../services/tokens/index.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import type { AuthPlugin } from './plugin.ts'
import { requireSession } from './session.ts'

// An office that signs in many programs at once polls every five seconds for each.
const pollsPerMinute = 600
// Programs call these. They read no cookie, so another site gains nothing by sending requests.
const forPrograms = { anyOrigin: true } as const

export const deviceRoutes: AuthPlugin = async (app, { deps, context }) => {
  const { db, config, tokenDirectory, sharedLimits: limits } = deps
  const polls = createRateLimit(pollsPerMinute, limits && { limits, kind: 'device' })

  app.post('/auth/device', { config: forPrograms, schema: { body: BeginDevice } }, async (request) => {
    await context.attempts.begin(request.ip)
    const { deviceCode, userCode, interval } = await startDeviceLogin(db, { ...request.body, address: request.ip })
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
    const { secret, id, scopes, expiresAt, account } = await redeemDeviceCode(db, request.body.device_code)
    const expires_in = Math.floor((expiresAt.getTime() - Date.now()) / 1000)
    return { access_token: secret, token_type: 'Bearer', expires_in, scope: scopes.join(' '), id, account }
  })

  // As in RFC 7009, a token that is already invalid is not an error, and the response doesn't reveal it.
  app.post('/auth/device/revoke', { config: forPrograms, schema: { body: RevokeHeld } }, async (request, reply) => {
    const { exceeded, resetSeconds } = await polls.take(clientOf(request.ip))
    if (exceeded) throw tooMany('Too many token requests from this IP address.', resetSeconds)
    const token = await tokenDirectory.find(request.body.token, true)
    if (token && token.revokedAt === null && !(token.expiresAt && token.expiresAt <= new Date())) {
      await revokeOwnToken(db, { ...token, tokenId: token.id })
      tokenDirectory.forgetAccount(token.accountId)
    }
    return reply.code(204).send(null)
  })

  // Requires a session, and still limits guesses: a signed-in person could approve somebody else's program.
  app.post('/auth/device/look', { schema: { body: LookAtDevice } }, async (request) => {
    const { userId } = await requireSession(db, request)
    return context.attempts.guess(request.ip, async (take) => {
      await take.person(`device of ${userId}`, null)
      return findDeviceLogin(db, request.body.userCode)
    })
  })

  app.post('/auth/device/answer', { schema: { body: AnswerDevice } }, async (request, reply) => {
    const session = await requireSession(db, request)
    await context.attempts.guess(request.ip, async (take) => {
      await take.person(`device of ${session.userId}`, null)
      await answerDeviceLogin(db, session, request.body)
    })
    return reply.code(204).send(null)
  })
}
