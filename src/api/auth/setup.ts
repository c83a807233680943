// /auth/setup: opens a link of `/setup#<code>`. Only a POST uses it up: a mail's preview, which sends GET, does not.

import { Fault } from '../../platform/errors.ts'
import { clientOf } from '../../platform/http/client-address.ts'
import { LookAtCode, TakeCode } from '../../schemas/people.ts'
import { lookAtCode, takeCode } from '../../services/people/index.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import type { AuthPlugin } from './plugin.ts'
import { findSigned, originOf, sendSession } from './session.ts'

const failuresPerMinute = 30

export const setupRoutes: AuthPlugin = async (app, { deps }) => {
  const { db, sharedLimits: limits } = deps
  const failures = createRateLimit(failuresPerMinute, limits && { limits, kind: 'setup' })

  /** A good link is always taken, whoever else tries bad ones from the same address: codes cannot be guessed. */
  async function counting<T>(address: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'link_not_valid') throw error
      const { exceeded, resetSeconds } = await failures.take(clientOf(address))
      throw exceeded ? tooMany('Too many invalid links from this IP address.', resetSeconds) : error
    }
  }

  app.post('/auth/setup/look', { schema: { body: LookAtCode } }, (request) =>
    counting(request.ip, () => lookAtCode(db, request.body.code)),
  )

  app.post('/auth/setup', { schema: { body: TakeCode } }, (request, reply) =>
    counting(request.ip, async () => {
      const signedInAs = (await findSigned(db, request))?.userId ?? null
      const opened = await takeCode(db, { ...request.body, signedInAs, from: originOf(request) })
      return sendSession(db, request, reply, opened)
    }),
  )
}
