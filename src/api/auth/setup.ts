// /auth/setup: opens a link of `/setup#<code>`. Only a POST uses the link up, because email previews send GET.

import { Fault } from '../../platform/errors.ts'
import { clientOf } from '../../platform/http/client-address.ts'
import { LookAtCode, TakeCode } from '../../schemas/people.ts'
import { previewCode, redeemCode } from '../../services/people/index.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import type { AuthPlugin } from './plugin.ts'
import { currentSession, originOf, sendSession } from './session.ts'

const failuresPerMinute = 30

export const setupRoutes: AuthPlugin = async (app, { deps }) => {
  const { db, sharedLimits: limits } = deps
  const failures = createRateLimit(failuresPerMinute, limits && { limits, kind: 'setup' })

  /** A valid link always works, even if others try invalid ones from the same address: codes can't be guessed. */
  async function countFailures<T>(address: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'link_not_valid') throw error
      const { exceeded, resetSeconds } = await failures.take(clientOf(address))
      throw exceeded ? tooMany('Too many invalid links from this IP address.', resetSeconds) : error
    }
  }

  app.post('/auth/setup/look', { schema: { body: LookAtCode } }, (request) =>
    countFailures(request.ip, () => previewCode(db, request.body.code)),
  )

  app.post('/auth/setup', { schema: { body: TakeCode } }, (request, reply) =>
    countFailures(request.ip, async () => {
      const signedInAs = (await currentSession(db, request))?.userId ?? null
      const opened = await redeemCode(db, { ...request.body, signedInAs, from: originOf(request) })
      return sendSession(db, request, reply, opened)
    }),
  )
}
