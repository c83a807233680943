// Settings of projects: how they are built, deployed and served.
import { type Static, type TSchema, Type } from '@sinclair/typebox'
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

// A leading dash would read as an option, and a leading dot could leave the tree. The builder checks again.
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

export const appliesTo = ['now', 'next start', 'next deployment'] as const
type AppliesTo = (typeof appliesTo)[number]

/** From when on a change of it counts, what it is in a new project, how it is shown, and what is accepted. */
function setting<S extends TSchema, A extends TSchema>(
  appliesTo: AppliesTo,
  initial: NoInfer<Static<A>>,
  shown: S,
  accepted: A,
) {
  return { appliesTo, initial, shown, accepted: Type.Optional(accepted) }
}

const flag = (appliesTo: AppliesTo, initial: boolean, description: string) =>
  setting(appliesTo, initial, Type.Boolean({ description }), Type.Boolean())

const optional = (description: string, accepted: TSchema & { static: string }) =>
  setting('next deployment', null, Nullable(Type.String({ description })), Nullable(accepted))

// What acts when a site is served applies now: it reaches the edges with the event of the change.
const settings = {
  productionBranch: setting(
    'now',
    null,
    Type.String({
      description:
        'What is deployed to production: the branch that was set, else the default branch of the repository, taken for ' +
        '`main` until a push or a deployment has asked for it',
    }),
    Nullable(Branch),
  ),
  rootDirectory: optional('Folder of the repository that is built; null: its root', Directory),
  installCommand: optional('null: by the lockfile', Command),
  buildCommand: optional('null: by the build script, else by the framework', Command),
  outputDirectory: optional('null: by the framework', Directory),
  spaFallback: setting(
    'now',
    null,
    Nullable(
      Type.Boolean({
        description:
          'Whether unknown paths that accept HTML are answered with index.html; null: as `detected` of each deployment says',
      }),
    ),
    Nullable(Type.Boolean()),
  ),
  cleanUrls: flag('now', true, '/about is answered with about.html'),
  publishAnyway: flag(
    'next deployment',
    false,
    'Private keys, .env files, PHP programs, databases and archives of the source are published too, where nothing ' +
      'is built; else they are left out, and `warnings` of the deployment name them',
  ),
  autoDeploy: flag('now', true, 'A push makes a deployment'),
  hsts: flag('now', false, 'Browsers are told to use only HTTPS at the attached domains for a year from each visit on'),
  buildNetwork: setting(
    'next deployment',
    'public',
    Choice(networks, { description: `What builds reach. ${networkMeaning}` }),
    Choice(networks),
  ),
  serverNetwork: setting(
    'next start',
    'public',
    Choice(networks, { description: `What servers reach, from their next start on. ${networkMeaning}` }),
    Choice(networks),
  ),
  instances: setting(
    'now',
    1,
    Type.Integer({ description: 'How many instances of its server run in production, over as many machines' }),
    Type.Integer({ minimum: 1, maximum: 10 }),
  ),
  previewProtection: setting(
    'now',
    'none',
    Choice(previewProtections, {
      description:
        'Who sees deployments at their own addresses. none: everybody; password: who knows the password, or has a link; ' +
        'link: who has a link of `POST /deployments/{id}/share`. Production addresses are open to all',
    }),
    Choice(previewProtections),
  ),
  // Its hash is stored, and nothing of it is shown.
  previewPassword: {
    accepted: Type.Optional(
      Type.String({
        minLength: 8,
        maxLength: 200,
        description: 'What visitors of previews are asked for; never returned. Another one ends all links and visits',
      }),
    ),
  },
  skewProtection: flag(
    'now',
    false,
    'What a page loads at a production address comes from the deployment that the page came from, as long as it is ' +
      'there: by the cookie `__dpl`, or `?dpl=` with the id of a deployment that has served production',
  ),
  watchPaths: setting(
    'now',
    [],
    Type.Array(Type.String(), {
      description: 'A push that changes nothing under these paths makes no deployment; empty: every push makes one',
    }),
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
  crons: setting(
    'now',
    [],
    Type.Array(Named(CronSetting), { description: 'Paths of production that are called on a schedule' }),
    Type.Array(CronSetting, {
      maxItems: 20,
      description: 'Paths of production that are called on a schedule, by GET; see `GET /projects/{project}/crons`',
    }),
  ),
}

type Settings = typeof settings

/** One part of every setting that has it, by name. */
function partOf<K extends string>(part: K) {
  const having = Object.entries(settings).filter(([, setting]) => part in setting)
  return Object.fromEntries(having.map(([name, setting]) => [name, (setting as Record<K, unknown>)[part]])) as {
    [N in keyof Settings as K extends keyof Settings[N] ? N : never]: Settings[N][K & keyof Settings[N]]
  }
}

export const initialSettings = partOf('initial')
export const settingAppliesTo = partOf('appliesTo')

export const ProjectSettings = Type.Object(partOf('shown'), {
  $id: 'ProjectSettings',
  description: 'How a project is built and served',
})

export const ChangeProjectSettings = Body(partOf('accepted'), {
  $id: 'ChangeProjectSettings',
  description: 'Settings to change; what is left out stays, or is as for a new project',
})
