// Settings of projects: how they are built, deployed and served.
import { Type } from '@sinclair/typebox'
import { Body, Choice, Named, Nullable } from './common.ts'

export const previewProtections = ['none', 'password', 'link'] as const

export const networks = ['public', 'registry', 'none'] as const

const networkMeaning =
  'public: the public internet and nothing private; registry: only the package registry and the repository host of this installation, by proxy; none: no network'

export const CronSetting = Body(
  {
    path: Type.String({
      maxLength: 500,
      pattern: '^/(?![/\\\\])[\\x21\\x22\\x24-\\x5b\\x5d-\\x7e]*$',
      description: 'must be a path that starts with a single /, without a host; write spaces as %20',
    }),
    schedule: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'As cron writes it, in UTC: minute, hour, day of the month, month, day of the week',
    }),
  },
  {
    $id: 'CronSetting',
    description: 'What is called on a schedule',
    examples: [{ path: '/api/cleanup', schedule: '0 3 * * *' }],
  },
)

export const ProjectSettings = Type.Object(
  {
    productionBranch: Type.String({
      description:
        'What is deployed to production: the branch that was set, else the default branch of the repository, taken for ' +
        '`main` until a push or a deployment has asked for it',
    }),
    rootDirectory: Nullable(Type.String({ description: 'Folder of the repository that is built; null: its root' })),
    installCommand: Nullable(Type.String({ description: 'null: by the lockfile' })),
    buildCommand: Nullable(Type.String({ description: 'null: by the build script, else by the framework' })),
    outputDirectory: Nullable(Type.String({ description: 'null: by the framework' })),
    spaFallback: Nullable(
      Type.Boolean({
        description:
          'Whether unknown paths that accept HTML are answered with index.html; null: as `detected` of each deployment says',
      }),
    ),
    cleanUrls: Type.Boolean({ description: '/about is answered with about.html' }),
    publishAnyway: Type.Boolean({
      description:
        'Private keys, .env files, PHP programs, databases and archives of the source are published too, where nothing ' +
        'is built; else they are left out, and `warnings` of the deployment name them',
    }),
    autoDeploy: Type.Boolean({ description: 'A push makes a deployment' }),
    hsts: Type.Boolean({
      description: 'Browsers are told to use only HTTPS at the attached domains for a year from each visit on',
    }),
    buildNetwork: Choice(networks, { description: `What builds reach. ${networkMeaning}` }),
    serverNetwork: Choice(networks, { description: `What servers reach, from their next start on. ${networkMeaning}` }),
    instances: Type.Integer({
      description: 'How many instances of its server run in production, over as many machines',
    }),
    previewProtection: Choice(previewProtections, {
      description:
        'Who sees deployments at their own addresses. none: everybody; password: who knows the password, or has a link; ' +
        'link: who has a link of `POST /deployments/{id}/share`. Production addresses are open to all',
    }),
    skewProtection: Type.Boolean({
      description:
        'What a page loads at a production address comes from the deployment that the page came from, as long as it is ' +
        'there: by the cookie `__dpl`, or `?dpl=` with the id of a deployment that has served production',
    }),
    watchPaths: Type.Array(Type.String(), {
      description: 'A push that changes nothing under these paths makes no deployment; empty: every push makes one',
    }),
    crons: Type.Array(Named(CronSetting), { description: 'Paths of production that are called on a schedule' }),
  },
  { $id: 'ProjectSettings', description: 'How a project is built and served' },
)

// A dash or a dot at the start would read as an option or leave the tree; the builder checks again.
const Directory = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^(?!/)(?!.*(^|/)\\.\\.(/|$))[A-Za-z0-9_.@+/ -]+$',
  description: 'must be a path inside the repository, such as packages/site',
})
const Command = Type.String({
  minLength: 1,
  maxLength: 1000,
  pattern: '^[^\\n\\r]+$',
  description: 'must be one line of shell',
})
const Branch = Type.String({ minLength: 1, maxLength: 255, description: 'Name of a branch; null: the default one' })
const OrNull = <T extends ReturnType<typeof Type.String>>(schema: T) => Nullable(schema)

const settingsFields = {
  productionBranch: Type.Optional(OrNull(Branch)),
  rootDirectory: Type.Optional(OrNull(Directory)),
  installCommand: Type.Optional(OrNull(Command)),
  buildCommand: Type.Optional(OrNull(Command)),
  outputDirectory: Type.Optional(OrNull(Directory)),
  spaFallback: Type.Optional(Nullable(Type.Boolean())),
  cleanUrls: Type.Optional(Type.Boolean()),
  publishAnyway: Type.Optional(Type.Boolean()),
  autoDeploy: Type.Optional(Type.Boolean()),
  hsts: Type.Optional(Type.Boolean()),
  buildNetwork: Type.Optional(Choice(networks)),
  serverNetwork: Type.Optional(Choice(networks)),
  instances: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
  previewProtection: Type.Optional(Choice(previewProtections)),
  previewPassword: Type.Optional(
    Type.String({
      minLength: 8,
      maxLength: 200,
      description: 'What visitors of previews are asked for; never returned. Another one ends all links and visits',
    }),
  ),
  skewProtection: Type.Optional(Type.Boolean()),
  watchPaths: Type.Optional(
    Type.Array(
      Type.String({
        maxLength: 200,
        pattern: '^!?(?!/)[^\\\\\\s!?{}\\u0000-\\u001f\\u007f][^\\\\?{}\\u0000-\\u001f\\u007f]*$',
        description:
          'must be a path from the repository root, with only * and ** as wildcards: apps/web/** or !docs/**',
      }),
      { maxItems: 50, description: 'The last one that fits a file decides; one that begins with ! says no' },
    ),
  ),
  crons: Type.Optional(
    Type.Array(CronSetting, {
      maxItems: 20,
      description: 'Paths of production that are called on a schedule, by GET; see `GET /projects/{project}/crons`',
    }),
  ),
}

export const ChangeProjectSettings = Body(settingsFields, {
  $id: 'ChangeProjectSettings',
  description: 'Settings to change; what is left out stays, or is as for a new project',
})
