// /projects/{project}/deploy-hooks: list, create, read, delete; and outside /api, the address that starts a deployment.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from '@sinclair/typebox'
import { Fault } from '../../platform/errors.ts'
import { Named } from '../../schemas/common.ts'
import {
  CreateDeployHook,
  DeployHook,
  DeployHookCallParams,
  DeployHookList,
  DeployHookParams,
  DeployHookQuery,
  DeployHookResult,
  DeployHookWithUrl,
} from '../../schemas/deploy-hooks.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import {
  callDeployHook,
  checkDeployHook,
  createDeployHook,
  deleteDeployHook,
  deployHookVersion,
  findCalledHook,
  findDeployHook,
  listDeployHooks,
} from '../../services/pushes/index.ts'
import { precondition, sendSingle } from '../http/answers/etag.ts'
import { readPage, sendPage } from '../http/answers/page.ts'
import type { Deps } from '../http/deps.ts'
import { requireHttps, shedLoad } from '../http/intake/transport.ts'
import { createRateLimit, tooMany } from '../http/shares/rate-limit.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const deployHookRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls } = deps

  app.get(
    '/projects/:project/deploy-hooks',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'listDeployHooks',
        tags: ['Projects'],
        summary: 'List deploy hooks',
        description: 'The deploy hooks of the project, newest first, without their addresses.',
        params: ProjectParams,
        querystring: DeployHookQuery,
        response: { 200: Named(DeployHookList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'deployHooks')
      const deployHooks = await listDeployHooks(db, request.actor, request.params.project, page)
      return sendPage(request, reply, page, { deployHooks })
    },
  )

  app.post(
    '/projects/:project/deploy-hooks',
    {
      config: {
        scope: 'projects:write',
        faults: ['project_without_repository'],
        meaning: (_request: unknown, body: SoundBody<typeof CreateDeployHook>) => checkDeployHook(body),
      },
      schema: {
        operationId: 'createDeployHook',
        tags: ['Projects'],
        summary: 'Create a deploy hook',
        description:
          'The answer holds an address with a secret in it, which is never shown again. Whoever sends a POST there, with ' +
          'any body or none, starts a deployment of `ref`: for a CMS, a timer or another service that cannot hold a token.',
        params: ProjectParams,
        body: CreateDeployHook,
        response: { 201: Named(DeployHookWithUrl) },
      },
    },
    (request, reply) => {
      const { project: key } = request.params
      return once(request, reply, {
        status: 201,
        work: (db) => createDeployHook(db, urls, request.actor, { key, input: request.body }),
        location: ({ id }) => `/projects/${key}/deploy-hooks/${id}`,
        shown: ({ url: _url, ...hook }) => deployHookVersion(hook),
      })
    },
  )

  app.get(
    '/projects/:project/deploy-hooks/:id',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'getDeployHook',
        tags: ['Projects'],
        summary: 'Read a deploy hook',
        description: 'A deploy hook of the project and when it was last used, without its address.',
        params: DeployHookParams,
        response: { 200: Named(DeployHook) },
      },
    },
    async (request, reply) => {
      const hook = await findDeployHook(db, request.actor, request.params.project, request.params.id)
      return sendSingle(request, reply, hook, deployHookVersion(hook))
    },
  )

  app.delete(
    '/projects/:project/deploy-hooks/:id',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deleteDeployHook',
        tags: ['Projects'],
        summary: 'Delete a deploy hook',
        description: 'Its address starts nothing any more.',
        params: DeployHookParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key, id } = request.params
      await deleteDeployHook(db, urls, request.actor, { key, id, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}

const bodyLimitBytes = 64 * 1024
const maxInFlight = 100
const maxOpenPerAddress = 25
const callsPerMinute = 60

/** Without a token: whoever knows the address may start the deployment. */
export const deployHookCallRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, urls, config, repositories, vault, sharedLimits: limits } = deps
  const options = { urls, repositories, vault, region: config.region }
  const callsPerHook = createRateLimit(callsPerMinute, limits && { limits, kind: 'deploy' })
  shedLoad(app, Math.min(config.maxInFlight, maxInFlight))
  boundOpenPerAddress(app, maxOpenPerAddress, maxInFlight)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    requireHttps(request)
    // Whatever a service sends along is read and not looked at, also under a type that is no type.
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
      // Before the body is read, whatever it is.
      preParsing: async (request) => {
        const hook = await findCalledHook(db, (request.params as Static<typeof DeployHookCallParams>).secret)
        const { exceeded, resetSeconds } = await callsPerHook.take(hook.id)
        if (exceeded) throw tooMany(`More than ${callsPerMinute} calls to the deploy hook in a minute.`, resetSeconds)
      },
    },
    async (request, reply) => {
      // Looked up again: the hook may have been deleted while the body came.
      const hook = await findCalledHook(db, request.params.secret)
      request.actor = hook.actor
      reply.code(202)
      return callDeployHook(db, options, hook)
    },
  )

  // Whoever opens the address in a browser, or a program that looks links up, starts nothing.
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
