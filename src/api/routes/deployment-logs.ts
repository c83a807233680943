// /deployments/{id}/logs: what a build and then its servers printed, in pages or live.
import { Named } from '../../schemas/common.ts'
import { DeploymentParams, LogLines, LogMessage, LogQuery } from '../../schemas/deployments.ts'
import { findDeployment, isFinished, linesAfter } from '../../services/deployments/index.ts'
import { follow } from '../http/live/live-stream.ts'
import { wantsStream } from '../http/live/sse.ts'
import { resumeAfter, sendLines, streamBatch } from '../http/responses/log-lines.ts'
import type { RoutePlugin } from './route.ts'

export const deploymentLogRoutes: RoutePlugin = async (app, { deps }) => {
  const { db } = deps

  app.get(
    '/deployments/:id/logs',
    {
      config: { scope: 'deployments:read', faults: ['quota_exceeded'], stream: LogMessage },
      schema: {
        operationId: 'getDeploymentLogs',
        tags: ['Deployments'],
        summary: 'Read the log of a deployment',
        description:
          'Lines of the build, and behind them those that its servers print, oldest first. Lines of the build are kept for ' +
          '90 days or as long as the operator has set, those of servers for 24 hours, as in `/runtime-logs`. With `Accept: ' +
          'text/event-stream` the same lines live: every event carries its number as id, `Last-Event-ID` resumes after it, ' +
          'and an `end` event with the final state closes the stream.',
        params: DeploymentParams,
        querystring: LogQuery,
        response: { 200: Named(LogLines) },
      },
    },
    async (request, reply) => {
      const { actor } = request
      const { id } = request.params
      await findDeployment(db, actor, id)
      if (!wantsStream(request)) {
        return sendLines(request, reply, request.query, ({ seq, limit }) => linesAfter(db, id, seq, limit))
      }

      let seq = resumeAfter(request)
      return follow(deps, request, reply, {
        wakesOnEvent: ({ subject }) => subject === id,
        wakesOnLog: (deploymentId) => deploymentId === id,
        async step(stream) {
          // The state is read before the lines: once it is final, no more lines can follow.
          const { state } = await findDeployment(db, actor, id)
          const lines = await linesAfter(db, id, seq, streamBatch)
          for (const line of lines) {
            seq = line.seq
            if (!stream.send({ id: String(seq), data: line })) return 'end'
          }
          if (lines.length === streamBatch) return 'again'
          if (!isFinished(state)) return 'wait'
          stream.send({ event: 'end', data: { state } })
          return 'end'
        },
      })
    },
  )
}
