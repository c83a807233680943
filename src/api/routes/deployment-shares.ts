// /deployments/{id}/share: a link that opens a protected preview for a while.
import { Named } from '../../schemas/common.ts'
import { DeploymentParams, DeploymentShare, ShareDeployment } from '../../schemas/deployments.ts'
import { shareDeployment } from '../../services/deployments/index.ts'
import type { RoutePlugin } from './route.ts'

export const deploymentShareRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { urls, vault } = deps

  app.post(
    '/deployments/:id/share',
    {
      config: {
        scope: 'deployments:write',
        faults: ['deployment_not_ready', 'preview_not_protected'],
        secretAnswer: true,
      },
      schema: {
        operationId: 'shareDeployment',
        tags: ['Deployments'],
        summary: 'Make a link to a protected preview',
        description:
          'Whoever opens the link sees this deployment at its own address until the link ends, without the password. It ' +
          'ends earlier when `previewPassword` or `previewProtection` of the project changes. It is not shown again.',
        params: DeploymentParams,
        body: ShareDeployment,
        response: { 200: Named(DeploymentShare) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 200,
        work: (db) => shareDeployment(db, { urls, vault }, request.actor, { id: request.params.id, ...request.body }),
      }),
  )
}
