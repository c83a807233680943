// /projects/{project}/deploy-hooks: list, create, read, delete.
import { Named } from '../../schemas/common.ts'
import {
  CreateDeployHook,
  DeployHook,
  DeployHookList,
  DeployHookParams,
  DeployHookQuery,
  DeployHookWithUrl,
} from '../../schemas/deploy-hooks.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import {
  checkDeployHook,
  createDeployHook,
  deleteDeployHook,
  deployHookVersion,
  findDeployHook,
  listDeployHooks,
} from '../../services/pushes/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
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
