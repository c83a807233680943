// /hooks/deploy/{secret}: starts a deployment without a token, because the URL holds the secret.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from '@sinclair/typebox'
import { Fault } from '../../platform/errors.ts'
import { Named } from '../../schemas/common.ts'
import { DeployHookCallParams, DeployHookResult } from '../../schemas/deploy-hooks.ts'
import { callDeployHook, findCalledHook } from '../../services/pushes/index.ts'
import type { Deps } from '../http/deps.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import { protectHook } from './protect.ts'

const bodyLimitBytes = 64 * 1024
const callsPerMinute = 60

export const deployHookCallRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, urls, config, repositories, vault, sharedLimits: limits } = deps
  const options = { urls, repositories, vault, region: config.region }
  const callsPerHook = createRateLimit(callsPerMinute, limits && { limits, kind: 'deploy' })
  protectHook(app, config.maxInFlight)
  // Services send bodies of any type, even malformed types. The body is read and ignored.
  app.addHook('onRequest', async (request) => {
    request.raw.headers['content-type'] = 'application/octet-stream'
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: bodyLimitBytes }, (_request, _raw, done) => done(null))

  app.post(
    '/hooks/deploy/:secret',
    {
      config: {
        faults: [
          'invalid_request',
          'account_suspended',
          'quota_exceeded',
          'https_required',
          'not_found',
          'method_not_allowed',
          'project_without_repository',
          'body_too_large',
          'ref_not_found',
          'rate_limited',
          'internal_error',
          'overloaded',
          'database_unavailable',
        ],
      },
      bodyLimit: bodyLimitBytes,
      schema: {
        operationId: 'callDeployHook',
        tags: ['Projects'],
        summary: 'Call a deploy hook',
        description:
          'Starts a deployment of the ref of the hook: to production if that is the production branch, as a preview ' +
          'otherwise. The secret in the address is all it takes; a body of any type is let pass. While a deployment of the ' +
          'same commit waits for its build, it is answered again and no second one is made.',
        params: DeployHookCallParams,
        response: { 202: Named(DeployHookResult) },
      },
      // Before the body is read.
      preParsing: async (request) => {
        const hook = await findCalledHook(db, (request.params as Static<typeof DeployHookCallParams>).secret)
        const { exceeded, resetSeconds } = await callsPerHook.take(hook.id)
        if (exceeded) throw tooMany(`More than ${callsPerMinute} calls to the deploy hook in a minute.`, resetSeconds)
      },
    },
    async (request, reply) => {
      // The hook may have been deleted while the body arrived.
      const hook = await findCalledHook(db, request.params.secret)
      request.actor = hook.actor
      reply.code(202)
      return callDeployHook(db, options, hook)
    },
  )

  // Opening the URL in a browser or previewing the link must not start a deployment.
  app.route({
    method: ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    url: '/hooks/deploy/:secret',
    schema: { hide: true },
    preParsing: async () => {
      throw new Fault('method_not_allowed', 'Call a deploy hook with POST: curl -X POST <url>', {
        allow: ['POST'],
      })
    },
    handler: async () => {},
  })
}
