// API tokens.
import { Type } from '@sinclair/typebox'
import {
  Body,
  Choice,
  ListOf,
  ListQuery,
  Named,
  Nullable,
  OptionalBody,
  ProjectKey,
  Timestamp,
  TimestampInput,
} from './common.ts'
import { DnsRecordType } from './dns-records.ts'

const nouns = [
  'projects',
  'deployments',
  'domains',
  'dns',
  'tickets',
  'tokens',
  'webhooks',
  'events',
  'members',
] as const

export const tokenScopes = [
  '*',
  'operator',
  ...nouns.flatMap((noun) => [`${noun}:read`, `${noun}:write`] as const),
] as const

/** For the reference. */
export const scopeMeanings = {
  '*': 'everything of the account',
  operator: 'for the platform’s own staff; no other scope includes it',
  ...Object.fromEntries(nouns.map((noun) => [`${noun}:read`, `read ${noun}`])),
  ...Object.fromEntries(nouns.map((noun) => [`${noun}:write`, `read and change ${noun}`])),
}

const namesOfZone = 'Names relative to the domain; the first or the last label may be *, for one or more labels'

export const TokenZone = Type.Object(
  {
    domain: Type.String(),
    names: Nullable(Type.Array(Type.String(), { description: `${namesOfZone}; null: all` })),
    types: Nullable(Type.Array(Named(DnsRecordType), { description: 'null: all' })),
  },
  {
    $id: 'TokenZone',
    description: 'A part of a zone that a token is narrowed to',
    examples: [{ domain: 'example.com', names: ['_acme-challenge', '_acme-challenge.*'], types: ['TXT'] }],
  },
)

/** Patterns of names and types, in the bodies of tokens and keys. */
export const zonePartFields = {
  names: Type.Optional(
    Nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 1020 }), {
        minItems: 1,
        maxItems: 50,
        description: `${namesOfZone}; null or left out: all`,
      }),
    ),
  ),
  types: Type.Optional(
    Nullable(
      Type.Array(DnsRecordType, {
        minItems: 1,
        maxItems: 50,
        uniqueItems: true,
        description: 'null or left out: all',
      }),
    ),
  ),
}

export const NewTokenZone = Body(
  { domain: Type.String({ minLength: 1, maxLength: 512 }), ...zonePartFields },
  {
    $id: 'NewTokenZone',
    description: 'A part of a zone to narrow a token to',
    examples: [{ domain: 'example.com', names: ['_acme-challenge'], types: ['TXT'] }],
  },
)

const fields = {
  id: Type.String({ description: 'tok_…' }),
  name: Type.String(),
  scopes: Type.Array(Choice(tokenScopes)),
  projects: Nullable(
    Type.Array(Type.String(), { description: 'Projects that the token is narrowed to; null: the whole account' }),
  ),
  zones: Nullable(
    Type.Array(Named(TokenZone), {
      description: 'Parts of zones that the token is narrowed to, and can do nothing outside of; null: no such bound',
    }),
  ),
  prefix: Type.String({ description: 'First characters of the secret, to recognise it by' }),
  lastUsedAt: Nullable(Timestamp),
  expiresAt: Nullable(Timestamp),
  createdAt: Timestamp,
  parentId: Nullable(
    Type.String({
      description:
        'The token that bounds its access and its expiry, and with which it is revoked: the one that created it or took ' +
        'that one’s place; null: none, or not known',
    }),
  ),
  creatorId: Nullable(
    Type.String({
      description:
        'The token that asked for it, and with which it is revoked, whatever has replaced that one since; of those that ' +
        'rotated themselves before, the first one; null: none, or not known',
    }),
  ),
  lineage: Type.String({
    description:
      'Id of the first token of its lineage. A token that was rotated by itself or by what it created shares its lineage ' +
      'with its successor, and revoking one of a lineage revokes all; after any other rotation the successor has its own',
  }),
  replaces: Nullable(Type.String({ description: 'The token that it replaced by a rotation; null: none' })),
  replacedBy: Nullable(Type.String({ description: 'The token that replaced it last; null: none' })),
  createdBy: Nullable(
    Type.String({ description: 'usr_…, the person who made it, by the console or by a token of theirs; null: nobody' }),
  ),
}

const example = {
  id: 'tok_01jcqk7b3n0grz5p9sc6v2x1',
  name: 'ci',
  scopes: ['deployments:write'],
  projects: ['hello'],
  zones: null,
  prefix: 'brt_4f2a',
  lastUsedAt: null,
  expiresAt: null,
  createdAt: '2026-11-14T09:32:00.000Z',
  parentId: 'tok_01jcqk5v8w0gk3xq4t7zc9me',
  creatorId: 'tok_01jcqk5v8w0gk3xq4t7zc9me',
  lineage: 'tok_01jcqk7b3n0grz5p9sc6v2x1',
  replaces: null,
  replacedBy: null,
  createdBy: 'usr_01jcqk4h2m0grz5p9sc6v2x1',
}

const exampleSecret = 'brt_4f2a9c1d8e7b6a5f4e3d2c1b0a9f8e7d6c5b4a'

export const Token = Type.Object(fields, {
  $id: 'Token',
  description: 'An API token, without its secret',
  examples: [example],
})

/** The secret of a token, and the field's first name. */
export const secretFields = {
  secret: Type.String({ description: 'Shown in this answer and never again' }),
  token: Type.String({ deprecated: true, description: 'The same; use `secret`' }),
}

export const TokenWithSecret = Type.Object(
  { ...fields, ...secretFields },
  {
    $id: 'TokenWithSecret',
    description: 'A new API token with its secret',
    examples: [{ ...example, secret: exampleSecret, token: exampleSecret }],
  },
)

export const CreateToken = Body(
  {
    name: Type.String({ minLength: 1, maxLength: 100 }),
    scopes: Type.Optional(
      Type.Array(Choice(tokenScopes), {
        minItems: 1,
        maxItems: 20,
        uniqueItems: true,
        description: 'Left out: those of the calling token',
      }),
    ),
    projects: Type.Optional(
      Nullable(
        Type.Array(ProjectKey, {
          minItems: 1,
          maxItems: 50,
          uniqueItems: true,
          description: 'Narrows the token to these projects',
        }),
      ),
    ),
    zones: Type.Optional(
      Nullable(
        Type.Array(NewTokenZone, {
          minItems: 1,
          maxItems: 20,
          description:
            'Narrows the token to these parts of zones: it can read and change the records in them, and do nothing ' +
            'else. Null or left out: those of the calling token',
        }),
      ),
    ),
    expiresAt: Type.Optional(
      Nullable({
        ...TimestampInput,
        description:
          'must be a time such as 2027-01-31T12:00:00Z, no later than the calling token expires; left out: when that does',
      }),
    ),
  },
  { $id: 'CreateToken', examples: [{ name: 'ci', scopes: ['deployments:write'], projects: ['hello'] }] },
)

export const ChangeToken = Body(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    scopes: Type.Optional(
      Type.Array(Choice(tokenScopes), {
        minItems: 1,
        maxItems: 20,
        uniqueItems: true,
        description: 'Fewer than the token has',
      }),
    ),
    projects: Type.Optional(
      Type.Array(ProjectKey, {
        minItems: 1,
        maxItems: 50,
        uniqueItems: true,
        description: 'Fewer than the token is narrowed to',
      }),
    ),
    zones: Type.Optional(
      Type.Array(NewTokenZone, {
        minItems: 1,
        maxItems: 20,
        description: 'Parts of zones, within those that the token is narrowed to',
      }),
    ),
    expiresAt: Type.Optional({
      ...TimestampInput,
      description: 'must be a time such as 2027-01-31T12:00:00Z, no later than the token expires now',
    }),
  },
  { $id: 'ChangeToken', minProperties: 1, examples: [{ name: 'ci of the shop' }, { scopes: ['deployments:read'] }] },
)

export const RotateToken = OptionalBody(
  Body(
    {
      overlapSeconds: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 604_800, default: 0, description: 'How long the old secret still works' }),
      ),
      revokeChildren: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Revokes all that would be revoked with the old one, such as the tokens that it created',
        }),
      ),
    },
    { $id: 'RotateToken', examples: [{ overlapSeconds: 3600 }] },
  ),
)

export const TokenParams = Type.Object({ id: Type.String({ description: 'tok_…' }) })
export const TokenList = ListOf('tokens', Token)
export const TokenQuery = ListQuery({})
