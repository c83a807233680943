// The push hook of a project: its secret, what a repository host sends, and where commit statuses go.
import { Type } from '@sinclair/typebox'
import { Body, Choice, Nullable, NullableNamed, OptionalBody, Timestamp } from './common.ts'

export const statusProviders = ['github', 'gitea', 'gitlab'] as const

const statusExample = {
  provider: 'github',
  apiUrl: 'https://api.github.com',
  postedAt: '2026-11-14T09:32:10.000Z',
  error: null,
}

export const CommitStatusTarget = Type.Object(
  {
    provider: Choice(statusProviders),
    apiUrl: Type.String({ description: 'Address of the repository host’s API' }),
    postedAt: Nullable(Timestamp),
    error: Nullable(Type.String({ description: 'Why the last status could not be posted; null when it was' })),
  },
  {
    $id: 'CommitStatusTarget',
    description: 'Where the status of a deployment’s commit is posted; the token is never returned',
    examples: [statusExample],
  },
)

const skipExample = {
  at: '2026-11-14T09:31:00.000Z',
  project: 'hello',
  ref: 'main',
  commit: '4f2a9c1d0e5b6a7988c7d6e5f4a3b2c1d0e9f8a7',
  reason: 'paths_unchanged',
  detail: 'None of the 2 changed files is under the watchPaths of the project hello.',
}

export const SkippedPush = Type.Object(
  {
    at: Timestamp,
    project: Type.String({ description: 'Name of the project' }),
    ref: Type.String({ description: 'The branch' }),
    commit: Type.String(),
    reason: Choice(['paths_unchanged'] as const),
    detail: Type.String({ description: 'The same in a sentence' }),
  },
  {
    $id: 'SkippedPush',
    description: 'A push that made no deployment, because it changed nothing under the watched paths',
    examples: [skipExample],
  },
)

const hookExample = {
  url: 'https://api.example.com/hooks/git/prj_01jcqk5v8w0gk3xq4t7zc9me',
  lastPushAt: '2026-11-14T09:31:00.000Z',
  commitStatus: statusExample,
  lastSkip: null,
  createdAt: '2026-11-14T09:30:00.000Z',
  updatedAt: '2026-11-14T09:30:00.000Z',
}

export const PushHook = Type.Object(
  {
    url: Type.String({ format: 'uri', description: 'Address to enter at the repository host' }),
    lastPushAt: Nullable(Type.String({ format: 'date-time', description: 'When a push last made a deployment' })),
    commitStatus: NullableNamed(CommitStatusTarget),
    lastSkip: NullableNamed(SkippedPush),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'PushHook', description: 'Where a repository host tells of pushes', examples: [hookExample] },
)

export const PushHookWithSecret = Type.Object(
  {
    ...PushHook.properties,
    secret: Type.String({ description: 'brh_…, to enter at the repository host; shown here and never again' }),
  },
  {
    $id: 'PushHookWithSecret',
    description: 'A push hook and its new secret',
    examples: [{ ...hookExample, secret: 'brh_7Gm2kQ9xT4bR8wZ1cV6nJ3hL5dF0sPqYtXaEuKoM' }],
  },
)

export const CreatePushHook = OptionalBody(
  Body(
    {
      overlapSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 604_800,
          default: 0,
          description: 'How long the secret that is replaced still works',
        }),
      ),
    },
    { $id: 'CreatePushHook', examples: [{ overlapSeconds: 3600 }] },
  ),
)

export const PutCommitStatusTarget = Body(
  {
    provider: Choice(statusProviders),
    apiUrl: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        // URL parsers silently drop or rewrite these, but the URL that is checked must be the one that is called.
        pattern: '^[^\\s\\u0000-\\u001f\\u007f\\\\?]+$',
        description:
          'must be an absolute https:// URL; defaults to https://api.github.com for github and https://gitlab.com/api/v4 ' +
          'for gitlab',
      }),
    ),
    token: Type.String({
      minLength: 1,
      maxLength: 500,
      pattern: '^[\\x21-\\x7e]+$',
      description: 'must be a token of the repository host, without spaces',
    }),
  },
  {
    $id: 'PutCommitStatusTarget',
    examples: [{ provider: 'gitea', apiUrl: 'https://git.example.com/api/v1', token: '5f1c0de2' }],
  },
)

export const PushRepository = Type.Object(
  {
    full_name: Type.Optional(Type.String({ maxLength: 1000, description: 'GitHub, Gitea and Forgejo' })),
    default_branch: Type.Optional(Type.Unknown({ description: 'Taken where the repository host does not answer' })),
  },
  { $id: 'PushRepository' },
)

export const PushProject = Type.Object(
  {
    path_with_namespace: Type.Optional(Type.String({ maxLength: 1000, description: 'GitLab' })),
    default_branch: Type.Optional(Type.Unknown({ description: 'Taken where the repository host does not answer' })),
  },
  { $id: 'PushProject' },
)

/** The fields of a push that matter. Hosts send many more, which are ignored. */
export const Push = Type.Object(
  {
    ref: Type.String({ minLength: 1, maxLength: 1000, description: 'refs/heads/<branch>' }),
    after: Type.String({
      pattern: '^([0-9a-f]{40}|[0-9a-f]{64})$',
      description: 'must be the full hash of the commit, or zeros if the branch was deleted',
    }),
    deleted: Type.Optional(Type.Boolean()),
    repository: Type.Optional(PushRepository),
    project: Type.Optional(PushProject),
    before: Type.Optional(Type.Unknown({ description: 'The commit before; zeros for a new branch' })),
    created: Type.Optional(Type.Unknown({ description: 'Whether the branch is new' })),
    forced: Type.Optional(Type.Unknown({ description: 'Whether commits were dropped' })),
    commits: Type.Optional(
      Type.Unknown({
        description: 'Commits with the files that they change, for watchPaths; another form says nothing',
      }),
    ),
    total_commits_count: Type.Optional(Type.Unknown({ description: 'GitLab: how many there are' })),
    total_commits: Type.Optional(Type.Unknown({ description: 'Gitea and Forgejo: how many there are' })),
  },
  {
    $id: 'Push',
    examples: [
      {
        ref: 'refs/heads/main',
        after: '4f2a9c1d0e5b6a7988c7d6e5f4a3b2c1d0e9f8a7',
        deleted: false,
        repository: { full_name: 'demo/hello' },
      },
    ],
  },
)

export const pushReasons = [
  'deployed',
  'already_deployed',
  'ping',
  'other_event',
  'other_repository',
  'not_a_branch',
  'branch_deleted',
  'auto_deploy_off',
  'paths_unchanged',
  'commit_not_found',
  'approval_needed',
  'pull_request_closed',
  'pull_request_outdated',
  'quota_exceeded',
] as const

export const PushResult = Type.Object(
  {
    deployment: Nullable(Type.String({ description: 'dpl_…; null where the push made none' })),
    reason: Choice(pushReasons, { description: 'Stable, for programs' }),
    detail: Type.String({ description: 'The same in a sentence, for the delivery log of the repository host' }),
  },
  {
    $id: 'PushResult',
    description: 'What became of a push',
    examples: [
      {
        deployment: 'dpl_01jcqk6a2m0gqy4n8rb5t1wz',
        reason: 'deployed',
        detail: 'main is being deployed to production.',
      },
    ],
  },
)

export const PushParams = Type.Object({
  project: Type.String({ maxLength: 64, description: 'Id of the project: prj_…' }),
})
