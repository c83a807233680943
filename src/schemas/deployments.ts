// Deployments, their states and their logs.
import { Type } from '@sinclair/typebox'
import {
  AnyOf,
  Body,
  Choice,
  ListOf,
  ListQuery,
  Named,
  Nullable,
  NullableNamed,
  OptionalBody,
  ProjectKey,
  pageEnd,
  Timestamp,
  timeQuery,
} from './common.ts'
import { DeploymentSource, DeploymentUploads } from './uploads.ts'

export const deploymentStates = ['BUILDING', 'READY', 'ERROR', 'CANCELED'] as const
export const deploymentSources = ['api', 'push', 'promote', 'upload', 'hook', 'pull_request'] as const

/** Reasons why a build fails. */
export const failureCodes = [
  'clone_failed',
  'lfs_unavailable',
  'ref_not_found',
  'repository_unreachable',
  'repository_access_denied',
  'host_key_changed',
  'build_tool_missing',
  'upload_incomplete',
  'install_failed',
  'build_failed',
  'build_timeout',
  'build_out_of_memory',
  'build_out_of_disk',
  'output_missing',
  'output_unsafe',
  'output_too_large',
  'quota_exceeded',
  'server_unhealthy',
  'platform_disk_full',
  'platform_storage_unavailable',
  'platform_runner_unavailable',
  'worker_lost',
  'internal_error',
] as const

export const DeploymentErrorCode = Choice([...failureCodes, 'account_suspended'] as const, {
  $id: 'DeploymentErrorCode',
  description: 'Stable, for programs; account_suspended with CANCELED alone',
})

export const DeploymentError = Type.Object(
  {
    code: Named(DeploymentErrorCode),
    message: Type.String({ description: 'What failed, and the line of its output that says why, if there is one' }),
    excerpt: Nullable(
      Type.String({ description: 'That line with some around it; null if its output does not say why it failed' }),
    ),
    logLine: Nullable(
      Type.Integer({
        minimum: 1,
        description:
          'Number (`seq`) of that line in the log. A stream opened with `Last-Event-ID` one below begins there',
      }),
    ),
  },
  { $id: 'DeploymentError', description: 'Why a deployment ended in ERROR, or was canceled by the platform' },
)

export const DeploymentStep = Type.Object(
  {
    name: Type.String({ description: 'clone, install, build or publish' }),
    durationMs: Type.Integer(),
  },
  { $id: 'DeploymentStep', description: 'A step of a build, and how long it took' },
)

export const DetectedFramework = Type.Object(
  {
    framework: Type.String({ description: 'other or static: no framework is known' }),
    packageManager: Nullable(
      Type.String({ description: 'With its version where package.json names one; null: nothing to install' }),
    ),
    node: Type.String({ description: 'Version of Node.js' }),
    buildCommand: Nullable(Type.String({ description: 'null: nothing is built' })),
    output: Type.String({ description: 'Folder that is published; . for a server' }),
    kind: Choice(['files', 'server'] as const),
    startCommand: Nullable(Type.String({ description: 'How the server is started; null for files' })),
    spaFallback: Type.Optional(
      Type.Boolean({
        description:
          'A single-page app: unknown paths that accept HTML get index.html, unless `spaFallback` of the project says ' +
          'something else. Never where the site has a 404.html',
      }),
    ),
    because: Type.Array(Type.String(), { description: 'Why, in sentences' }),
  },
  {
    $id: 'DetectedFramework',
    description: 'How a deployment is built and served: what the repository shows, with the settings of the project',
    examples: [
      {
        framework: 'next',
        packageManager: 'pnpm@10.1.0',
        node: '24',
        buildCommand: 'npm run build',
        output: '.',
        kind: 'server',
        startCommand: 'npm start',
        spaFallback: false,
        because: ['package.json depends on next.'],
      },
    ],
  },
)

/** Warnings of a build. */
export const warningCodes = [
  'rule_ignored',
  'file_ignored',
  'file_withheld',
  'several_lockfiles',
  'lockfile_outdated',
  'node_version_unsupported',
  'package_manager_unknown',
  'warnings_dropped',
  'repository_unreachable',
] as const

export const DeploymentWarning = Type.Object(
  {
    code: Type.String({ description: `Stable, for programs: ${warningCodes.join(', ')}; more may follow` }),
    message: Type.String(),
    file: Type.Optional(Type.String({ description: 'File that it is about, as a path of what is published or built' })),
    line: Type.Optional(Type.Integer({ minimum: 1, description: 'Line of the file' })),
  },
  {
    $id: 'DeploymentWarning',
    description: 'Something that the project asked for and that its deployment does not do, or not yet',
  },
)

export const Deployment = Type.Object(
  {
    id: Type.String({ description: 'dpl_…' }),
    project: Type.String(),
    state: Choice(deploymentStates, { description: 'READY means served: the server of a project has answered once' }),
    ref: Type.String({ description: 'Empty if its files were uploaded' }),
    commit: Type.String({ description: 'Short hash; empty until the repository has told it, and for uploads' }),
    production: Type.Boolean(),
    url: Type.String({
      format: 'uri',
      description: 'Address at which this very deployment is served until it is deleted; never given to another',
    }),
    region: Type.String(),
    createdAt: Timestamp,
    readyAt: Nullable(Timestamp),
    finishedAt: Nullable(Timestamp),
    error: Type.Unsafe<{ code: string; message: string; excerpt: string | null; logLine: number | null } | null>({
      anyOf: [Type.Ref('DeploymentError'), { type: 'null' }],
    }),
    source: Choice(deploymentSources),
    current: Type.Boolean({ description: 'Serves the production address now' }),
    pinned: Nullable(
      Type.String({
        description: 'dpl_…: what production of the project is pinned to, so that no other takes over when it is READY',
      }),
    ),
    startedAt: Nullable(Type.String({ format: 'date-time', description: 'When its build began; null while it waits' })),
    queuePosition: Nullable(
      Type.Integer({
        minimum: 1,
        description:
          'While it waits, its place among all builds that wait: 1 is next. Accounts take turns, so it may grow. ' +
          'Null once it has started, in events, and in answers to changes',
      }),
    ),
    branchUrl: Nullable(
      Type.String({
        format: 'uri',
        description:
          'URL of its branch, which always shows the newest READY deployment of the branch; null for tags, ' +
          'commits and uploads',
      }),
    ),
    commitSha: Nullable(Type.String({ description: 'Whole hash of the commit; null where `commit` is empty' })),
    commitMessage: Nullable(
      Type.String({ description: 'First line of the commit’s message, shortened; null until it is cloned' }),
    ),
    files: Nullable(Type.Integer({ description: 'How many files it serves; null for a server, and until READY' })),
    bytes: Nullable(Type.Integer({ description: 'Size of what it serves, without compression; null until READY' })),
    steps: Type.Array(Named(DeploymentStep), {
      description: 'How long each step of the build took, in order; empty until it has ended, and if it was canceled',
    }),
    detected: NullableNamed(DetectedFramework),
    warnings: Type.Array(Named(DeploymentWarning), {
      description:
        'What the project asked for and the deployment does not do; also in its log. Until it has ended, only what kept ' +
        'it from being looked up: repository_unreachable',
    }),
    untrusted: Type.Boolean({
      description:
        'Built from a fork, by an approval of its commit: no variable of the project was there, and it is never production',
    }),
    uploads: Type.Optional(Named(DeploymentUploads)),
  },
  {
    $id: 'Deployment',
    description: 'One build of one commit of a project',
    examples: [
      {
        id: 'dpl_01jcqk6a2m0gqy4n8rb5t1wz',
        project: 'hello',
        state: 'BUILDING',
        ref: 'main',
        commit: '4f2a9c1',
        production: true,
        url: 'http://hello-7m2k9xq4t.localhost:8080',
        region: 'local-1',
        createdAt: '2026-11-14T09:31:00.000Z',
        readyAt: null,
        finishedAt: null,
        error: null,
        source: 'api',
        current: false,
        pinned: null,
        startedAt: null,
        queuePosition: null,
        branchUrl: 'http://hello-git-main.localhost:8080',
        commitSha: '4f2a9c1d0b7e6853f4a2c19d8e7b60534f2a9c1d',
        commitMessage: null,
        files: null,
        bytes: null,
        steps: [],
        detected: null,
        warnings: [],
        untrusted: false,
      },
    ],
  },
)

export const CreateDeployment = Body(
  {
    project: ProjectKey,
    ref: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'Branch, tag or commit hash, or HEAD for the default branch; the production branch if left out',
      }),
    ),
    production: Type.Optional(Type.Boolean({ default: false })),
    source: Type.Optional(DeploymentSource),
  },
  {
    $id: 'CreateDeployment',
    examples: [
      { project: 'hello', ref: 'main', production: true },
      {
        project: 'hello',
        source: {
          files: [
            {
              path: 'index.html',
              sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
              size: 4,
            },
          ],
        },
      },
    ],
  },
)

/** The query of a deployment whose body is an archive. */
export const ArchiveQuery = Body({
  project: ProjectKey,
  production: Type.Optional(Type.Boolean({ description: 'Production serves it when it is READY' })),
  prebuilt: Type.Optional(Type.Boolean({ description: 'The files are published as they are; nothing is built' })),
})

const oldForm = { deprecated: true, description: 'With an archive: use `POST /deployments/archive`' }

export const OldArchiveQuery = Body({
  project: Type.Optional({ ...ProjectKey, ...oldForm }),
  production: Type.Optional(Type.Boolean(oldForm)),
  prebuilt: Type.Optional(Type.Boolean(oldForm)),
})

export const PromoteDeployment = OptionalBody(
  Body(
    {
      pin: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Production stays at it: later deployments become READY, but do not take over',
        }),
      ),
    },
    { $id: 'PromoteDeployment', examples: [{ pin: true }] },
  ),
)

export const RedeployDeployment = OptionalBody(
  Body(
    {
      production: Type.Optional(
        Type.Boolean({ description: 'Takes over production when READY; left out, as the deployment did' }),
      ),
    },
    { $id: 'RedeployDeployment', examples: [{ production: true }] },
  ),
)

export const ShareDeployment = Body(
  {
    expiresIn: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: 2_592_000,
        default: 86_400,
        description: 'For how many seconds the link opens the preview, and a visit by it lasts',
      }),
    ),
  },
  { $id: 'ShareDeployment', examples: [{ expiresIn: 3600 }] },
)

export const DeploymentShare = Type.Object(
  {
    url: Type.String({ format: 'uri', description: 'Opens the preview for whoever has it: keep it as a secret' }),
    expiresAt: Timestamp,
  },
  {
    $id: 'DeploymentShare',
    description: 'A link to a protected preview',
    examples: [
      {
        url: 'http://hello-7m2k9xq4t.localhost:8080/?__berth_share=dpl_01jcqk6a2m0gqy4n8rb5t1wz.1794912345.3q2-7wq1c0x1jH8k',
        expiresAt: '2026-11-15T09:31:00.000Z',
      },
    ],
  },
)

export const DeploymentParams = Type.Object({ id: Type.String({ description: 'dpl_…' }) })

export const DeploymentList = ListOf('deployments', Deployment)

export const DeploymentQuery = ListQuery({
  ...timeQuery,
  project: Type.Optional(AnyOf(ProjectKey, 'Only those of these projects, by name or id')),
  state: Type.Optional(AnyOf(Choice(deploymentStates), 'Only those in these states')),
  production: Type.Optional(Type.Boolean()),
  ref: Type.Optional(Type.String({ maxLength: 255 })),
  commit: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Fa-f]{7,64}$',
      description: 'must be the hash of a commit, or at least its first 7 digits',
    }),
  ),
})

export const DeploymentTransition = Type.Object(
  { from: Choice(deploymentStates), to: Choice(deploymentStates), when: Type.String() },
  { $id: 'DeploymentTransition', description: 'A change of state' },
)

export const DeploymentStates = Type.Object(
  {
    initial: Choice(deploymentStates),
    transitions: Type.Array(Named(DeploymentTransition)),
    terminal: Type.Array(Choice(deploymentStates)),
  },
  {
    $id: 'DeploymentStates',
    description: 'Every state of a deployment and how it is reached',
    examples: [
      {
        initial: 'BUILDING',
        transitions: [{ from: 'BUILDING', to: 'READY', when: 'the build is published, and a server has answered' }],
        terminal: ['READY', 'ERROR', 'CANCELED'],
      },
    ],
  },
)

export const logStreams = ['stdout', 'stderr', 'system'] as const

export const LogLine = Type.Object(
  {
    seq: Type.Integer(),
    at: Timestamp,
    stream: Choice(logStreams),
    step: Type.String({ description: 'queue, clone, install, build or publish; run for what a server prints' }),
    text: Type.String(),
  },
  {
    $id: 'LogLine',
    description: 'One line of a build',
    examples: [{ seq: 1, at: '2026-11-14T09:31:01.000Z', stream: 'system', step: 'clone', text: 'Cloning demo/hello' }],
  },
)

export const LogLines = Type.Object(
  { lines: Type.Array(Named(LogLine)), ...pageEnd },
  { $id: 'LogLineList', description: 'A page of log lines, oldest first' },
)

export const LogLineMessage = Type.Object(
  { id: Type.String({ description: 'Number of the line' }), data: Named(LogLine) },
  { $id: 'LogLineMessage', description: 'A server-sent event with a line of the log' },
)

export const LogEnd = Type.Object(
  { state: Choice(deploymentStates) },
  { $id: 'LogEnd', description: 'The state in which the deployment has ended' },
)

export const LogEndMessage = Type.Object(
  { event: Choice(['end'] as const), data: Named(LogEnd) },
  { $id: 'LogEndMessage', description: 'The last server-sent event of the log of a deployment that has ended' },
)

export const LogMessage = Type.Unsafe<unknown>({
  $id: 'LogMessage',
  description: 'A server-sent event of the log',
  oneOf: [Named(LogLineMessage), Named(LogEndMessage)],
})

export const LogQuery = Body({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'How many lines at most' }),
  ),
  cursor: Type.Optional(
    Type.String({
      maxLength: 2000,
      description: '`nextCursor` of the page before, or a `latestCursor` kept from earlier',
    }),
  ),
})
