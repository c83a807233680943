// Projects and their build-time variables.
import { Type } from '@sinclair/typebox'
import { repositoryPattern } from '../platform/repository-address.ts'
import {
  AnyOf,
  Body,
  Choice,
  ListOf,
  ListQuery,
  Named,
  Nullable,
  NullableNamed,
  ProjectKey,
  Timestamp,
} from './common.ts'
import { TakedownNotice } from './takedowns.ts'

export const frameworks = [
  'auto',
  'static',
  'vite',
  'react',
  'vue',
  'svelte',
  'astro',
  'next',
  'nuxt',
  'sveltekit',
  'remix',
  'gatsby',
  'eleventy',
  'hugo',
  'docusaurus',
  'react-router',
  'angular',
  'vitepress',
  'parcel',
  'jekyll',
  'solidstart',
  'tanstack-start',
  'qwik',
  'nitro',
  'node',
  'other',
] as const

export const previewProtections = ['none', 'password', 'link'] as const

export const networks = ['public', 'registry', 'none'] as const

const networkMeaning =
  'public: the public internet and nothing private; registry: only the package registry and the repository host of this installation, by proxy; none: no network'

const example = {
  id: 'prj_01jcqk5v8w0gk3xq4t7zc9me',
  name: 'hello',
  framework: 'static',
  repo: 'demo/hello',
  region: 'local-1',
  productionUrl: 'http://hello.localhost:8080',
  settings: {
    productionBranch: 'main',
    rootDirectory: null,
    installCommand: null,
    buildCommand: null,
    outputDirectory: null,
    spaFallback: false,
    cleanUrls: true,
    autoDeploy: true,
    hsts: false,
    buildNetwork: 'public',
    serverNetwork: 'public',
    instances: 1,
    previewProtection: 'none',
    skewProtection: false,
  },
  createdAt: '2026-11-14T09:30:00.000Z',
  updatedAt: '2026-11-14T09:30:00.000Z',
  pinned: null,
}

export const ProjectSettings = Type.Object(
  {
    productionBranch: Type.String(),
    rootDirectory: Nullable(Type.String({ description: 'Folder of the repository that is built; null: its root' })),
    installCommand: Nullable(Type.String({ description: 'null: by the lockfile' })),
    buildCommand: Nullable(Type.String({ description: 'null: by the build script, else by the framework' })),
    outputDirectory: Nullable(Type.String({ description: 'null: by the framework' })),
    spaFallback: Type.Boolean({ description: 'Unknown paths are answered with index.html' }),
    cleanUrls: Type.Boolean({ description: '/about is answered with about.html' }),
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
  },
  { $id: 'ProjectSettings', description: 'How a project is built and served' },
)

export const Project = Type.Object(
  {
    id: Type.String({ description: 'prj_…' }),
    name: Type.String(),
    framework: Choice(frameworks, { description: 'auto: found out from the repository, see detected of a deployment' }),
    repo: Type.String({
      description:
        '<owner>/<repository>, or a full address over HTTPS or SSH; empty for a project without one, whose files are uploaded',
    }),
    region: Type.String(),
    productionUrl: Type.String({ format: 'uri', description: 'Address of the production deployment' }),
    settings: Named(ProjectSettings),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    pinned: Nullable(
      Type.String({
        description: 'Deployment that production stays at while later ones become READY; null: the newest takes over',
      }),
    ),
    takedown: Type.Optional(NullableNamed(TakedownNotice)),
  },
  { $id: 'Project', description: 'A project and its linked repository', examples: [example] },
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
const Branch = Type.String({ minLength: 1, maxLength: 255, description: 'Name of a branch' })
const OrNull = <T extends ReturnType<typeof Type.String>>(schema: T) => Nullable(schema)

const settingsFields = {
  productionBranch: Type.Optional(Branch),
  rootDirectory: Type.Optional(OrNull(Directory)),
  installCommand: Type.Optional(OrNull(Command)),
  buildCommand: Type.Optional(OrNull(Command)),
  outputDirectory: Type.Optional(OrNull(Directory)),
  spaFallback: Type.Optional(Type.Boolean()),
  cleanUrls: Type.Optional(Type.Boolean()),
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
}

export const ChangeProjectSettings = Body(settingsFields, {
  $id: 'ChangeProjectSettings',
  description: 'Settings to change; what is left out stays, or is as for a new project',
})

const Repo = Type.String({
  maxLength: 300,
  pattern: repositoryPattern,
  description: 'must be <owner>/<repository>, https://<host>/<path>, ssh://git@<host>/<path> or git@<host>:<path>',
})

export const CreateProject = Body(
  {
    name: Type.String({
      pattern: '^[a-z0-9](-?[a-z0-9]){0,39}$',
      description: 'must be 1 to 40 lower-case letters, digits and single dashes between them',
    }),
    framework: Type.Optional(Choice(frameworks, { default: 'auto' })),
    repo: Type.Optional(Repo),
    settings: Type.Optional(ChangeProjectSettings),
  },
  {
    $id: 'CreateProject',
    examples: [
      { name: 'docs', repo: 'acme/docs' },
      { name: 'docs', framework: 'vite', repo: 'acme/docs', settings: { buildCommand: 'npm run build' } },
    ],
  },
)

export const ChangeProject = Body(
  {
    framework: Type.Optional(Choice(frameworks)),
    repo: Type.Optional(Repo),
    settings: Type.Optional(ChangeProjectSettings),
  },
  { $id: 'ChangeProject', minProperties: 1, examples: [{ settings: { spaFallback: true } }] },
)

export const ProjectParams = Type.Object({ project: ProjectKey })

export const ProjectList = ListOf('projects', Project)

export const ProjectQuery = ListQuery({
  framework: Type.Optional(AnyOf(Choice(frameworks), 'Only those of these frameworks')),
  repo: Type.Optional(Type.String({ maxLength: 300 })),
  search: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: 'Part of the name or of the repository' }),
  ),
})

export const variableTargets = ['production', 'preview', 'all'] as const

export const Variable = Type.Object(
  {
    key: Type.String(),
    target: Choice(variableTargets, {
      description: 'Deployments that get this value; one of production or preview goes before that of all',
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    readable: Type.Boolean({ description: 'Whether the value is returned' }),
    value: Nullable(Type.String({ description: 'Null unless it is readable: a secret is never returned' })),
  },
  {
    $id: 'Variable',
    description: 'The value of a variable for one target',
    examples: [
      {
        key: 'API_KEY',
        target: 'all',
        createdAt: '2026-11-14T09:30:00.000Z',
        updatedAt: '2026-11-14T09:30:00.000Z',
        readable: false,
        value: null,
      },
    ],
  },
)

export const VariableList = Type.Object(
  { env: Type.Array(Named(Variable)) },
  { $id: 'VariableList', description: 'All variables of the project' },
)

export const VariableValues = Type.Object(
  { key: Type.String(), values: Type.Array(Named(Variable), { description: 'One for each target that has a value' }) },
  { $id: 'VariableValues', description: 'A variable with all its values' },
)

export const PutVariable = Body(
  {
    value: Type.String({ maxLength: 20_000 }),
    target: Type.Optional(Choice(variableTargets, { default: 'all', description: 'The target whose value is set' })),
    readable: Type.Optional(
      Type.Boolean({ default: false, description: 'Whether lists return the value to tokens with projects:read' }),
    ),
  },
  {
    $id: 'PutVariable',
    examples: [
      { value: 's3cret', target: 'production' },
      { value: 'https://api.example.com', readable: true },
    ],
  },
)

export const VariableTarget = Body({
  target: Type.Optional(
    Choice(variableTargets, { description: 'Only the value for this target; all of them if left out' }),
  ),
})

export const VariableParams = Type.Object({
  project: ProjectKey,
  key: Type.String({
    pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
    description: 'must be letters, digits and underscores, not starting with a digit',
  }),
})
