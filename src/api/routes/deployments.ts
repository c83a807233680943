// /deployments: list, read, wait, cancel, promote, delete.
import { Named, waitQuery } from '../../schemas/common.ts'
import {
  Deployment,
  DeploymentList,
  DeploymentParams,
  DeploymentQuery,
  DeploymentStates,
  PromoteDeployment,
} from '../../schemas/deployments.ts'
import {
  cancelDeployment,
  deleteDeployment,
  getDeployment,
  initialState,
  isFinished,
  listDeployments,
  terminalStates,
  transitions,
} from '../../services/deployments/index.ts'
import { isServedBy, promoteDeployment } from '../../services/production/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin } from './route.ts'

export const deploymentRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls } = deps

  app.get(
    '/deployments',
    {
      config: { scope: 'deployments:read' },
      schema: {
        operationId: 'listDeployments',
        tags: ['Deployments'],
        summary: 'List deployments',
        description:
          'Deployments of all projects or of one, newest first. After 30 days, or as long as the operator has set, those ' +
          'that neither serve production nor are among the newest of their project are deleted by the platform, with the ' +
          'event `deployment.deleted`.',
        querystring: DeploymentQuery,
        response: { 200: Named(DeploymentList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'deployments')
      const deployments = await listDeployments(db, urls, request.actor, { filter: request.query, page })
      return sendPage(request, reply, page, { deployments })
    },
  )

  app.get(
    '/deployments/states',
    {
      config: { scope: 'deployments:read' },
      schema: {
        operationId: 'listDeploymentStates',
        tags: ['Deployments'],
        summary: 'Read the state machine',
        description: 'Every state of a deployment, and when it changes into which.',
        response: { 200: Named(DeploymentStates) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, { initial: initialState, transitions, terminal: terminalStates }),
  )

  app.get(
    '/deployments/:id',
    {
      config: { scope: 'deployments:read', faults: ['quota_exceeded'] },
      schema: {
        operationId: 'getDeployment',
        tags: ['Deployments'],
        summary: 'Read a deployment',
        description:
          'With `wait`, the answer comes when the deployment has left BUILDING, and every visitor gets it if it took over ' +
          'production, or when the seconds are over.',
        params: DeploymentParams,
        querystring: waitQuery,
        response: { 200: Named(Deployment) },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const { wait } = request.query
      const { view } = await app.waits.until(request, {
        subject: id,
        waitSeconds: wait,
        async read() {
          const view = await getDeployment(db, urls, request.actor, id)
          // Clients that wait open the production URL next.
          return { view, isServed: !wait || !view.current || (await isServedBy(db, request.actor, { id })) }
        },
        settled: ({ view, isServed }) => isFinished(view.state) && isServed,
      })
      return sendSingle(request, reply, view)
    },
  )

  app.post(
    '/deployments/:id/cancel',
    {
      config: { scope: 'deployments:write', faults: ['deployment_finished'] },
      schema: {
        operationId: 'cancelDeployment',
        tags: ['Deployments'],
        summary: 'Cancel a deployment',
        description: 'Ends a build that is under way; its processes are gone within 5 s.',
        params: DeploymentParams,
        response: { 202: Named(Deployment) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => cancelDeployment(db, urls, request.actor, request.params.id),
      }),
  )

  app.post(
    '/deployments/:id/promote',
    {
      config: { scope: 'deployments:write', faults: ['deployment_not_ready'], showsServed: 'Production-Served' },
      schema: {
        operationId: 'promoteDeployment',
        tags: ['Deployments'],
        summary: 'Promote a deployment',
        description:
          'Points production at a READY deployment without a build: roll back, or forward again. With `pin` production ' +
          'stays there until `DELETE /projects/{project}/pin`, or another one is promoted without it. The answer comes ' +
          'when every visitor gets it, or after 30 seconds; then `GET /projects/{project}/production` tells which edges ' +
          'it waits for.',
        params: DeploymentParams,
        body: PromoteDeployment,
        response: { 202: Named(Deployment) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => promoteDeployment(db, urls, request.actor, { id: request.params.id, pin: request.body?.pin }),
      }),
  )

  app.delete(
    '/deployments/:id',
    {
      config: { scope: 'deployments:write', faults: ['deployment_in_production', 'deployment_building'] },
      schema: {
        operationId: 'deleteDeployment',
        tags: ['Deployments'],
        summary: 'Delete a deployment',
        description: 'Its address stops being served. Refused while it serves production or is being built.',
        params: DeploymentParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      await deleteDeployment(db, urls, request.actor, { id, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
