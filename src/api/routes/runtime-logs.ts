// /deployments/{id}/runtime-logs: what the servers of a deployment print, in pages or live.
import { Fault, invalidField } from '../../platform/errors.ts'
import { Named } from '../../schemas/common.ts'
import { DeploymentParams } from '../../schemas/deployments.ts'
import { RuntimeLogLines, RuntimeLogMessage, RuntimeLogQuery } from '../../schemas/runtime-logs.ts'
import { findDeployment, runtimeLinesAfter } from '../../services/deployments/index.ts'
import { follow } from '../http/live/live-stream.ts'
import { wantsStream } from '../http/live/sse.ts'
import { resumeAfter, sendLines, streamBatch } from '../http/responses/log-lines.ts'
import type { RoutePlugin } from './route.ts'

export const runtimeLogRoutes: RoutePlugin = async (app, { deps }) => {
  const { db } = deps

  app.get(
    '/deployments/:id/runtime-logs',
    {
      config: { scope: 'deployments:read', faults: ['quota_exceeded'], stream: RuntimeLogMessage },
      schema: {
        operationId: 'listRuntimeLogs',
        tags: ['Deployments'],
        summary: 'Read what the servers of a deployment print',
        description:
          'Lines of all its instances, oldest first, kept for 24 hours and up to 10,000 lines. What comes too fast is ' +
          'dropped, with a note of how much. With `Accept: text/event-stream` the same lines live: every event carries its ' +
          'number as id, and `Last-Event-ID` resumes after it.',
        params: DeploymentParams,
        querystring: RuntimeLogQuery,
        response: { 200: Named(RuntimeLogLines) },
      },
    },
    async (request, reply) => {
      const { actor } = request
      const { id } = request.params
      const { limit, cursor, since, ...rest } = request.query
      const filter = { ...rest, since: since === undefined ? undefined : timeOf(since) }
      await findDeployment(db, actor, id)
      if (wantsStream(request)) {
        let seq = resumeAfter(request)
        return follow(deps, request, reply, {
          wakesOnEvent: ({ subject }) => subject === id,
          wakesOnLog: (deploymentId) => deploymentId === id,
          async step(stream) {
            const gone = await findDeployment(db, actor, id).then(
              () => false,
              (error) => {
                if (error instanceof Fault && error.code === 'not_found') return true
                throw error
              },
            )
            if (gone) return 'end'
            const lines = await runtimeLinesAfter(db, id, filter, { seq, limit: streamBatch })
            for (const line of lines) {
              seq = line.seq
              if (!stream.send({ id: String(seq), data: line })) return 'end'
            }
            return lines.length === streamBatch ? 'again' : 'wait'
          },
        })
      }
      return sendLines(request, reply, { limit, cursor }, (after) => runtimeLinesAfter(db, id, filter, after))
    },
  )
}

function timeOf(text: string): Date {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw invalidField('#/since', 'bad_format', 'is not a valid time')
  return time
}
