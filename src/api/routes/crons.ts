// /projects/{project}/crons: when they run next, and how the last runs ended. Project settings define them.
import { Named } from '../../schemas/common.ts'
import { CronList, CronParams, CronRunList, CronRunQuery } from '../../schemas/crons.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import { listCronRuns, listCrons } from '../../services/crons/index.ts'
import { readPage, sendPage, wholeEnd } from '../http/responses/page.ts'
import type { RoutePlugin } from './route.ts'

export const cronRoutes: RoutePlugin = async (app, { deps }) => {
  const { db } = deps

  app.get(
    '/projects/:project/crons',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'listCrons',
        tags: ['Projects'],
        summary: 'List crons',
        description:
          'What the platform calls on a schedule, as `crons` of the settings says: when it runs next, and what came of ' +
          'the last run.',
        params: ProjectParams,
        response: { 200: Named(CronList) },
      },
    },
    async (request) => ({ crons: await listCrons(db, request.actor, request.params.project), ...wholeEnd }),
  )

  app.get(
    '/projects/:project/crons/:id/runs',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'listCronRuns',
        tags: ['Projects'],
        summary: 'List runs of a cron',
        description: 'The last 50 runs, newest first.',
        params: CronParams,
        querystring: CronRunQuery,
        response: { 200: Named(CronRunList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'runs')
      const { project: key, id } = request.params
      return sendPage(request, reply, page, { runs: await listCronRuns(db, request.actor, { key, id }, page) })
    },
  )
}
