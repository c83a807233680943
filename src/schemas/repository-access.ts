// The access of a project to a private repository: a deploy key or a token.
import { Type } from '@sinclair/typebox'
import { hostKeyPattern } from '../platform/git/ssh-keys.ts'
import { Body, Choice, Nullable, Timestamp } from './common.ts'

export const accessKinds = ['deploy_key', 'token'] as const
export const hostKeySources = ['given', 'first_use', 'built_in'] as const

const publicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFu1xk3lM0pVZ6y8cTqB2hJ4sN9dR7wEoKbYfXgA5tQm berth-docs'
const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl'

export const RepositoryAccess = Type.Object(
  {
    kind: Choice(accessKinds),
    host: Type.String({ description: 'The only host that it is shown to; another repository host never gets it' }),
    username: Nullable(Type.String({ description: 'Of a token' })),
    publicKey: Nullable(Type.String({ description: 'Of a deploy key, to enter at the repository host, for reading' })),
    hostKeys: Type.Array(Type.String(), {
      description: 'The keys that the host is known by; empty before its first use',
    }),
    hostKeysFrom: Nullable(
      Choice(hostKeySources, {
        description: 'given: by you; first_use: kept when the host first showed them; built_in: they come with Berth',
      }),
    ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  {
    $id: 'RepositoryAccess',
    description: 'How a project reads its private repository; the private key and the token are never returned',
    examples: [
      {
        kind: 'deploy_key',
        host: 'ssh://github.com',
        username: null,
        publicKey,
        hostKeys: [hostKey],
        hostKeysFrom: 'built_in',
        createdAt: '2026-11-14T09:30:00.000Z',
        updatedAt: '2026-11-14T09:30:00.000Z',
      },
    ],
  },
)

export const PutRepositoryAccess = Body(
  {
    kind: Choice(accessKinds),
    hostKeys: Type.Optional(
      Type.Array(
        Type.String({ pattern: hostKeyPattern, description: 'must be a public host key such as ssh-ed25519 AAAA…' }),
        {
          maxItems: 10,
          description:
            'For a deploy key: the keys of the host. Left out, those that come with Berth, or the first it shows',
        },
      ),
    ),
    newKey: Type.Optional(
      Type.Boolean({ default: false, description: 'For a deploy key: make another one in place of the present one' }),
    ),
    username: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        pattern: '^[\\x21-\\x39\\x3b-\\x7e]+$',
        description:
          'must be a user name without spaces or colons; defaults to the one that the host expects with tokens',
      }),
    ),
    token: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        pattern: '^[\\x21-\\x7e]+$',
        description: 'must be a token of the repository host, without spaces',
      }),
    ),
  },
  {
    $id: 'PutRepositoryAccess',
    examples: [{ kind: 'deploy_key' }, { kind: 'token', token: 'github_pat_7Gm2kQ9xT4bR8wZ1cV6n' }],
  },
)
