// /projects/{project}/production, /rollback and /pin: the history of production, rollbacks and pinning.
import { Named } from '../../schemas/common.ts'
import { Deployment } from '../../schemas/deployments.ts'
import { ProductionEntryList, ProductionQuery, RollBack } from '../../schemas/production.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import { listProduction, rollBack, unpinProject } from '../../services/production/index.ts'
import { precondition } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin } from './route.ts'

export const productionRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls } = deps

  app.get(
    '/projects/:project/production',
    {
      config: { scope: 'deployments:read' },
      schema: {
        operationId: 'listProduction',
        tags: ['Deployments'],
        summary: 'List what served production',
        description:
          'What served the production address of a project, from when to when and why, newest first. A rollback goes ' +
          'to the deployment before the present one that still exists, and the next rollback from there further back.',
        params: ProjectParams,
        querystring: ProductionQuery,
        response: { 200: Named(ProductionEntryList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'production')
      const production = await listProduction(db, request.actor, request.params.project, page)
      return sendPage(request, reply, page, { production })
    },
  )

  app.post(
    '/projects/:project/rollback',
    {
      config: { scope: 'deployments:write', faults: ['deployment_not_ready'], showsServed: 'Production-Served' },
      schema: {
        operationId: 'rollBackProject',
        tags: ['Deployments'],
        summary: 'Roll production back',
        description:
          'Points production at `to`, or at the deployment that served it before the present one, without a build, and ' +
          'pins it: later deployments become READY, but do not take over. The answer comes when every visitor gets it, ' +
          'or after 30 seconds; then `GET /projects/{project}/production` tells which edges it waits for.',
        params: ProjectParams,
        body: RollBack,
        response: { 202: Named(Deployment) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => rollBack(db, urls, request.actor, { key: request.params.project, to: request.body?.to }),
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
