// /projects/{project}/hook: the push hook and its commit statuses.
import { Named } from '../../schemas/common.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import { CreatePushHook, PushHook, PushHookWithSecret, PutCommitStatusTarget } from '../../schemas/push-hooks.ts'
import {
  apiUrlOf,
  createPushHook,
  deleteCommitStatusTarget,
  deletePushHook,
  findPushHook,
  putCommitStatusTarget,
} from '../../services/pushes/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const pushHookRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls, vault, config } = deps

  app.get(
    '/projects/:project/hook',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'getPushHook',
        tags: ['Projects'],
        summary: 'Read the push hook',
        description: 'Its address, when a push last came in and how commit statuses are doing, without any secret.',
        params: ProjectParams,
        response: { 200: Named(PushHook) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, await findPushHook(db, urls, request.actor, request.params.project)),
  )

  app.post(
    '/projects/:project/hook',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'createPushHook',
        tags: ['Projects'],
        summary: 'Make the push hook, or give it a new secret',
        description:
          'The answer holds the address and the secret to enter at GitHub, GitLab, Gitea or Forgejo; the secret is ' +
          'never shown again. A secret that is replaced works on for `overlapSeconds`, not at all if left out.',
        params: ProjectParams,
        body: CreatePushHook,
        response: { 201: Named(PushHookWithSecret) },
      },
    },
    (request, reply) => {
      const { project } = request.params
      const overlapSeconds = request.body?.overlapSeconds ?? 0
      return once(request, reply, {
        status: 201,
        work: (db) => createPushHook(db, { urls, vault }, request.actor, { key: project, overlapSeconds }),
        location: () => `/projects/${project}/hook`,
        shown: ({ secret: _secret, ...hook }) => hook,
      })
    },
  )

  app.delete(
    '/projects/:project/hook',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deletePushHook',
        tags: ['Projects'],
        summary: 'Delete the push hook',
        description: 'Pushes are refused from now on, and commits get no status.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await deletePushHook(db, urls, request.actor, { key, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )

  app.put(
    '/projects/:project/hook/status',
    {
      config: {
        scope: 'projects:write',
        meaning: (_request: unknown, { provider, apiUrl }: SoundBody<typeof PutCommitStatusTarget>) =>
          provider === undefined ? null : apiUrlOf(config, { provider, apiUrl }),
      },
      schema: {
        operationId: 'putCommitStatusTarget',
        tags: ['Projects'],
        summary: 'Post commit statuses',
        description:
          'From now on the repository host is told of each deployment as it is made and as it ends, as the status ' +
          '`berth/<project>/production` or `berth/<project>/preview` of its commit. The token must be allowed to ' +
          'write commit statuses; it is sealed at rest and never returned.',
        params: ProjectParams,
        body: PutCommitStatusTarget,
        response: { 200: Named(PushHook) },
      },
    },
    (request) => {
      const change = { key: request.params.project, input: request.body, precondition: precondition(request) }
      return putCommitStatusTarget(db, { urls, vault, rules: config }, request.actor, change)
    },
  )

  app.delete(
    '/projects/:project/hook/status',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deleteCommitStatusTarget',
        tags: ['Projects'],
        summary: 'Post no commit statuses',
        description: 'Forgets the token of the repository host.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await deleteCommitStatusTarget(db, urls, request.actor, { key, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
