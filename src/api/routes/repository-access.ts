// /projects/{project}/repository-access: the deploy key or token that reads a private repository.
import { Named } from '../../schemas/common.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import { PutRepositoryAccess, RepositoryAccess } from '../../schemas/repository-access.ts'
import {
  checkRepositoryAccess,
  deleteRepositoryAccess,
  findRepositoryAccess,
  putRepositoryAccess,
} from '../../services/projects/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const repositoryAccessRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, urls } = deps

  app.get(
    '/projects/:project/repository-access',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'getRepositoryAccess',
        tags: ['Projects'],
        summary: 'Read the access to a private repository',
        description: 'Its kind, its host, the public half of a deploy key and the host keys, without any secret.',
        params: ProjectParams,
        response: { 200: Named(RepositoryAccess) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, await findRepositoryAccess(db, request.actor, request.params.project)),
  )

  app.put(
    '/projects/:project/repository-access',
    {
      config: {
        scope: 'projects:write',
        meaning: (_request: unknown, body: SoundBody<typeof PutRepositoryAccess>) => checkRepositoryAccess(body),
      },
      schema: {
        operationId: 'putRepositoryAccess',
        tags: ['Projects'],
        summary: 'Set the access to a private repository',
        description:
          'With `deploy_key`, an Ed25519 key is made, and `publicKey` is what to enter at the repository host; a key that ' +
          'the project has for that host stays, unless `newKey` is true. With `token`, the repository is read over HTTPS. ' +
          'Either is sealed at rest, never returned, and shown to the present host of the repository alone.',
        params: ProjectParams,
        body: PutRepositoryAccess,
        response: { 200: Named(RepositoryAccess) },
      },
    },
    (request) => {
      const change = { key: request.params.project, input: request.body, precondition: precondition(request) }
      return putRepositoryAccess(db, deps, request.actor, change)
    },
  )

  app.delete(
    '/projects/:project/repository-access',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deleteRepositoryAccess',
        tags: ['Projects'],
        summary: 'Delete the access to a private repository',
        description: 'Forgets the key or the token. Builds from now on read only what is public.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await deleteRepositoryAccess(db, urls, request.actor, { key, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
