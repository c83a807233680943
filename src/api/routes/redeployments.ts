// /deployments/{id}/redeploy: deploys the same source again.
import { Named } from '../../schemas/common.ts'
import { Deployment, DeploymentParams, RedeployDeployment } from '../../schemas/deployments.ts'
import { createPlanned, isUploaded, planRedeployment } from '../../services/deployments/index.ts'
import { closedByClient, isGone, leaveInFlight } from '../http/requests/transport.ts'
import { createTurns } from '../http/shares/turns.ts'
import type { RoutePlugin } from './route.ts'

// Each waiting request holds its list of files in memory.
const maxWaiting = 8

export const redeploymentRoutes: RoutePlugin = async (app, { deps, once, inUploadTurn }) => {
  const { db, urls } = deps
  const { region } = deps.config
  const inTurn = createTurns('redeployments', maxWaiting)

  app.post(
    '/deployments/:id/redeploy',
    {
      config: {
        scope: 'deployments:write',
        faults: ['project_without_repository', 'source_incomplete', 'quota_exceeded'],
      },
      schema: {
        operationId: 'redeployDeployment',
        tags: ['Deployments'],
        summary: 'Redeploy a deployment',
        description:
          'Creates a deployment from the same commit or the same uploaded files, with the current settings and ' +
          'variables of the project. Nothing is uploaded again, and the branch may have moved on.',
        params: DeploymentParams,
        body: RedeployDeployment,
        response: { 201: Named(Deployment) },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const redeploy = () =>
        once(request, reply, {
          prepare: () => planRedeployment(db, request.actor, { id, region, production: request.body?.production }),
          inTurn: (plan, work) => ('files' in plan ? inUploadTurn(request.actor.accountId, work) : work()),
          status: 201,
          work: (db, plan) => createPlanned(db, urls, request.actor, plan),
          location: (deployment) => `/deployments/${deployment.id}`,
        })
      if (!(await isUploaded(db, request.actor, id))) return redeploy()
      leaveInFlight(request)
      return inTurn(request.actor.accountId, async () => {
        if (isGone(request)) throw closedByClient()
        await app.recheck(request)
        return redeploy()
      })
    },
  )
}
