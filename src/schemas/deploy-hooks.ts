// Deploy hooks: secret URLs that start a deployment.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Nullable, Timestamp } from './common.ts'
import { ProjectParams } from './projects.ts'

const fields = {
  id: Type.String({ description: 'dhk_…' }),
  name: Type.String(),
  ref: Nullable(Type.String({ description: 'Branch, tag or commit that it deploys; null: the production branch' })),
  createdAt: Timestamp,
  lastUsedAt: Nullable(Timestamp),
}

const example = {
  id: 'dhk_01jcqk7d5n0hvt8w3mx2s6ra',
  name: 'cms',
  ref: null,
  createdAt: '2026-11-23T09:33:00.000Z',
  lastUsedAt: null,
}

export const DeployHook = Type.Object(fields, {
  $id: 'DeployHook',
  description: 'A deploy hook, without its address',
  examples: [example],
})

export const DeployHookWithUrl = Type.Object(
  {
    ...fields,
    url: Type.String({
      format: 'uri',
      description: 'Whoever posts to it starts a deployment; shown in this answer and never again',
    }),
  },
  {
    $id: 'DeployHookWithUrl',
    description: 'A new deploy hook with its address',
    examples: [
      { ...example, url: 'https://api.example.com/hooks/deploy/brd_7Gm2kQ9xT4bR8wZ1cV6nJ3hL5dF0sPqYtXaEuKoM' },
    ],
  },
)

export const CreateDeployHook = Body(
  {
    name: Type.String({ minLength: 1, maxLength: 100, pattern: '\\S', description: 'must say what the hook is for' }),
    ref: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: 255,
          description: 'Branch, tag or commit to deploy; left out or null, the production branch',
        }),
      ),
    ),
  },
  { $id: 'CreateDeployHook', examples: [{ name: 'cms' }, { name: 'nightly', ref: 'next' }] },
)

export const DeployHookParams = Type.Object({
  ...ProjectParams.properties,
  id: Type.String({ description: 'dhk_…' }),
})
export const DeployHookList = ListOf('deployHooks', DeployHook)
export const DeployHookQuery = ListQuery({})

export const DeployHookCallParams = Type.Object({
  secret: Type.String({ description: 'brd_…, as it is in the address of the hook' }),
})

export const DeployHookResult = Type.Object(
  {
    deployment: Type.String({ description: 'dpl_…' }),
    reason: Choice(['deployed', 'already_queued'] as const, {
      description: 'already_queued: a deployment of the same commit waits for its build, so no second one was made',
    }),
    detail: Type.String({ description: 'The same in a sentence' }),
  },
  {
    $id: 'DeployHookResult',
    description: 'What a call of a deploy hook started',
    examples: [
      {
        deployment: 'dpl_01jcqk6a2m0gqy4n8rb5t1wz',
        reason: 'deployed',
        detail: 'main is being deployed to production.',
      },
    ],
  },
)
