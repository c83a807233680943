// /projects/{project}/pull-requests: list them, and approve a commit from a fork.
import { Named } from '../../schemas/common.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import {
  ApprovePullRequest,
  PullRequest,
  PullRequestList,
  PullRequestParams,
  PullRequestQuery,
} from '../../schemas/pull-requests.ts'
import { approvePullRequest, listPullRequests } from '../../services/pushes/index.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import type { RoutePlugin } from './route.ts'

export const pullRequestRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls, config } = deps

  app.get(
    '/projects/:project/pull-requests',
    {
      config: { scope: 'deployments:read' },
      schema: {
        operationId: 'listPullRequests',
        tags: ['Projects'],
        summary: 'List pull requests',
        description:
          'Pull and merge requests that the repository host told the push hook of, newest first. Closed ones are kept ' +
          'for 30 days.',
        params: ProjectParams,
        querystring: PullRequestQuery,
        response: { 200: Named(PullRequestList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'pullRequests')
      const pullRequests = await listPullRequests(db, request.actor, request.params.project, page)
      return sendPage(request, reply, page, { pullRequests })
    },
  )

  app.post(
    '/projects/:project/pull-requests/:number/approve',
    {
      config: {
        scope: 'deployments:write',
        faults: ['approval_not_needed', 'pull_request_changed', 'pull_request_closed'],
      },
      schema: {
        operationId: 'approvePullRequest',
        tags: ['Projects'],
        summary: 'Approve a commit of a fork',
        description:
          'Builds this one commit of a request that comes from a fork, as an `untrusted` preview: its build and its ' +
          'server get no variable of the project, and it never becomes production. 409 `pull_request_changed` if the ' +
          'request has a newer commit. A newer commit needs another approval.',
        params: PullRequestParams,
        body: ApprovePullRequest,
        response: { 202: Named(PullRequest) },
      },
    },
    (request, reply) => {
      const { project: key, number } = request.params
      const approval = { key, number, commit: request.body.commit, region: config.region }
      return once(request, reply, {
        status: 202,
        work: (db) => approvePullRequest(db, urls, request.actor, approval),
      })
    },
  )
}
