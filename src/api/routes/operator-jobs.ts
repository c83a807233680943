// /operator/jobs: failed background jobs, to retry or delete.
import { Named } from '../../schemas/common.ts'
import { Job, JobList, JobParams, JobQuery } from '../../schemas/jobs.ts'
import { discardFailedJob, findFailedJob, pageOfFailedJobs, retryFailedJob } from '../../services/jobs/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin } from './route.ts'

const access = { scope: 'operator', accountWide: true } as const

export const operatorJobRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls } = deps

  app.get(
    '/operator/jobs',
    {
      config: access,
      schema: {
        operationId: 'listFailedJobs',
        tags: ['Operator'],
        summary: 'List jobs that were given up',
        description: 'Work in the background that failed as often as it may, the last one first, with its last error.',
        querystring: JobQuery,
        response: { 200: Named(JobList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'jobs', 2)
      return sendPage(request, reply, page, { jobs: await pageOfFailedJobs(db, page) })
    },
  )

  app.get(
    '/operator/jobs/:id',
    {
      config: access,
      schema: {
        operationId: 'getFailedJob',
        tags: ['Operator'],
        summary: 'Read a job that was given up',
        description: 'What it is about, how often it was tried, and its last error.',
        params: JobParams,
        response: { 200: Named(Job) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await findFailedJob(db, request.params.id)),
  )

  app.post(
    '/operator/jobs/:id/retry',
    {
      config: { ...access, faults: ['deployment_finished', 'account_suspended', 'quota_exceeded'] },
      schema: {
        operationId: 'retryFailedJob',
        tags: ['Operator'],
        summary: 'Run a job again',
        description:
          'Queues it as new, with all attempts before it. If the same work waits already, that is run at once instead. ' +
          'A build that was given up has ended its deployment: its commit is deployed anew, unless there is a newer deployment. ' +
          'The answer is the job that waits, which has another id.',
        params: JobParams,
        response: { 202: Named(Job) },
      },
    },
    (request, reply) =>
      once(request, reply, { status: 202, work: (db) => retryFailedJob(db, urls, request.params.id) }),
  )

  app.delete(
    '/operator/jobs/:id',
    {
      config: access,
      schema: {
        operationId: 'discardFailedJob',
        tags: ['Operator'],
        summary: 'Discard a job',
        description: 'Deletes a job that was given up. What it was to do is not done.',
        params: JobParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await discardFailedJob(db, { id: request.params.id, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
