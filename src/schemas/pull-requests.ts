// Pull and merge requests: their commit, its approval and its deployment.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Nullable, Timestamp } from './common.ts'
import { ProjectParams } from './projects.ts'

export const pullRequestStates = ['OPEN', 'CLOSED'] as const
export const approvals = ['not_needed', 'needed', 'approved'] as const

export const PullRequest = Type.Object(
  {
    number: Type.Integer({ description: 'As the repository host counts them' }),
    project: Type.String({ description: 'Name of the project' }),
    title: Type.String({ description: 'Written by its author, shortened' }),
    branch: Type.String({ description: 'The branch it comes from' }),
    fromFork: Type.Boolean({ description: 'It comes from another repository: nothing is built before it is approved' }),
    state: Choice(pullRequestStates),
    commit: Type.String({ description: 'Short hash of its newest commit' }),
    commitSha: Type.String({ description: 'Whole hash of the same' }),
    approval: Choice(approvals, { description: 'Of its newest commit; `needed` again after each new one of a fork' }),
    approvedBy: Nullable(Type.String({ description: 'Who approved its newest commit: tok_… or usr_…' })),
    deployment: Nullable(Type.String({ description: 'dpl_… of its newest commit; null while there is none' })),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    closedAt: Nullable(Timestamp),
  },
  {
    $id: 'PullRequest',
    description: 'A pull or merge request, as the repository host last told of it',
    examples: [
      {
        number: 7,
        project: 'hello',
        title: 'Fix the greeting',
        branch: 'greeting',
        fromFork: true,
        state: 'OPEN',
        commit: '4f2a9c1',
        commitSha: '4f2a9c1d0e5b6a7988c7d6e5f4a3b2c1d0e9f8a7',
        approval: 'needed',
        approvedBy: null,
        deployment: null,
        createdAt: '2026-11-14T09:31:00.000Z',
        updatedAt: '2026-11-14T09:31:00.000Z',
        closedAt: null,
      },
    ],
  },
)

export const PullRequestList = ListOf('pullRequests', PullRequest)
export const PullRequestQuery = ListQuery({})

export const PullRequestParams = Type.Object({
  ...ProjectParams.properties,
  number: Type.String({ description: 'Number of the request' }),
})

export const ApprovePullRequest = Body(
  {
    commit: Type.String({
      // No short hashes: whoever opens requests could craft another commit with the same prefix.
      pattern: '^([0-9a-f]{40}|[0-9a-f]{64})$',
      description: 'must be the full hash of the commit that you reviewed',
    }),
  },
  { $id: 'ApprovePullRequest', examples: [{ commit: '4f2a9c1d0e5b6a7988c7d6e5f4a3b2c1d0e9f8a7' }] },
)
