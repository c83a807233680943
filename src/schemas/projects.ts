// Projects and their variables.
import { Type } from '@sinclair/typebox'
import { repositoryPattern } from '../platform/git/repository-address.ts'
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
  pageEnd,
  Timestamp,
} from './common.ts'
import { appliesTo, ChangeProjectSettings, initialSettings, ProjectSettings } from './project-settings.ts'
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

const example = {
  id: 'prj_01jcqk5v8w0gk3xq4t7zc9me',
  name: 'hello',
  framework: 'static',
  repo: 'demo/hello',
  region: 'local-1',
  productionUrl: 'http://hello.localhost:8080',
  settings: { ...initialSettings, productionBranch: 'main' },
  createdAt: '2026-11-14T09:30:00.000Z',
  updatedAt: '2026-11-14T09:30:00.000Z',
  pinned: null,
  formerNames: [],
  defaultBranch: 'main',
}

export const AppliedChange = Type.Object(
  {
    field: Type.String({ description: 'As in the body of the change, such as settings.buildCommand' }),
    appliesTo: Choice(appliesTo, {
      description:
        'now: everything that is served and done from now on; next start: servers that start from now on; next ' +
        'deployment: deployments that are made from now on',
    }),
  },
  {
    $id: 'AppliedChange',
    description: 'A changed field of a project, and what the change applies to',
    examples: [{ field: 'settings.buildCommand', appliesTo: 'next deployment' }],
  },
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
    formerNames: Type.Array(Type.String(), {
      description: 'Names that it had before, the last one last; they still lead to it',
    }),
    defaultBranch: Nullable(
      Type.String({
        description:
          'Default branch of the repository, as its host last named it; null until a push or a deployment has asked for it',
      }),
    ),
    takedown: Type.Optional(NullableNamed(TakedownNotice)),
    changes: Type.Optional(
      Type.Array(Named(AppliedChange), { description: 'Only in the response to a change: what it has changed' }),
    ),
  },
  { $id: 'Project', description: 'A project and its linked repository', examples: [example] },
)

const Repo = Type.String({
  maxLength: 300,
  pattern: repositoryPattern,
  description: 'must be <owner>/<repository>, https://<host>/<path>, ssh://git@<host>/<path> or git@<host>:<path>',
})

const Name = Type.String({
  pattern: '^[a-z0-9](-?[a-z0-9]){0,39}$',
  description: 'must be 1 to 40 lower-case letters, digits and single dashes between them',
})

export const CreateProject = Body(
  {
    name: Name,
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
    name: Type.Optional(Name),
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
  { env: Type.Array(Named(Variable)), ...pageEnd },
  { $id: 'VariableList', description: 'All variables of the project on one page' },
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
