// /projects/{project}/rollback and /pin: production goes back to what it was, and stays there.
import { Named } from '../../schemas/common.ts'
import { Deployment } from '../../schemas/deployments.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import { rollBack, unpinProject } from '../../services/deployments/deployments.ts'
import { precondition } from '../http/etag.ts'
import { NoContent, type RoutePlugin } from './route.ts'

export const pinRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls } = deps

  app.post(
    '/projects/:project/rollback',
    {
      config: { scope: 'deployments:write' },
      schema: {
        operationId: 'rollBackProject',
        tags: ['Deployments'],
        summary: 'Roll production back',
        description:
          'Points production at the deployment that served it before the present one, at once and without a build, and ' +
          'pins it: later deployments become READY, but do not take over.',
        params: ProjectParams,
        response: { 202: Named(Deployment) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => rollBack(db, urls, request.actor, request.params.project),
      }),
  )

  app.delete(
    '/projects/:project/pin',
    {
      config: { scope: 'deployments:write' },
      schema: {
        operationId: 'deletePin',
        tags: ['Deployments'],
        summary: 'Release production',
        description: 'The next production deployment that becomes READY takes over again. 404 if nothing is pinned.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await unpinProject(db, urls, request.actor, { key, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
