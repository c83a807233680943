// Trusted OpenID Connect tokens, such as those of CI, and their exchange for short-lived project tokens.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ProjectKey, Timestamp } from './common.ts'

export const oidcScopes = ['projects:read', 'deployments:read', 'deployments:write'] as const

const OidcClaims = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string', minLength: 1, maxLength: 300 },
  minProperties: 1,
  maxProperties: 20,
  description:
    'Claims that the token must have, with exactly these values; one of them must name the repository or subject',
})

const example = {
  issuer: 'https://token.actions.githubusercontent.com',
  audience: 'https://api.example.com',
  claims: { repository: 'me/site', ref: 'refs/heads/main' },
  scopes: ['projects:read', 'deployments:write'],
}

export const OidcTrust = Type.Object(
  {
    issuer: Type.String(),
    audience: Type.String(),
    claims: OidcClaims,
    scopes: Type.Array(Choice(oidcScopes)),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  {
    $id: 'OidcTrust',
    description: 'Whose tokens are exchanged for short tokens of the project',
    examples: [{ ...example, createdAt: '2026-11-14T09:30:00.000Z', updatedAt: '2026-11-14T09:30:00.000Z' }],
  },
)

export const PutOidcTrust = Body(
  {
    issuer: Type.String({
      minLength: 1,
      maxLength: 300,
      pattern: '^[^\\s\\u0000-\\u001f\\u007f\\\\]+$',
      description: 'must be the https:// URL of the issuer, as in the iss claim of its tokens',
    }),
    audience: Type.Optional(
      Type.String({ minLength: 1, maxLength: 300, description: 'What aud must be; left out, the address of this API' }),
    ),
    claims: OidcClaims,
    scopes: Type.Optional(
      Type.Array(Choice(oidcScopes), {
        minItems: 1,
        maxItems: 3,
        uniqueItems: true,
        description:
          'What the short tokens may do in this project; left out, projects:read and deployments:write, as far as the caller has them',
      }),
    ),
  },
  { $id: 'PutOidcTrust', examples: [{ issuer: example.issuer, claims: example.claims }] },
)

export const ExchangeOidcToken = Body(
  {
    token: Type.String({ minLength: 1, maxLength: 16_000, description: 'The JSON Web Token of the issuer' }),
    project: ProjectKey,
  },
  { $id: 'ExchangeOidcToken', examples: [{ token: 'eyJhbGciOiJSUzI1NiJ9.e30.c2ln', project: 'site' }] },
)

export const ExchangedToken = Type.Object(
  {
    token: Type.String({ description: 'brt_…, to be sent as a bearer token' }),
    expiresAt: Timestamp,
    project: Type.String({ description: 'Name of the project that it is narrowed to' }),
    projectId: Type.String({ description: 'prj_…' }),
    scopes: Type.Array(Choice(oidcScopes)),
  },
  {
    $id: 'ExchangedToken',
    description: 'A token of 15 minutes for one project',
    examples: [
      {
        token: 'brt_0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r',
        expiresAt: '2026-11-14T09:45:00.000Z',
        project: 'site',
        projectId: 'prj_01jcqk5v8w0gk3xq4t7zc9me',
        scopes: ['projects:read', 'deployments:write'],
      },
    ],
  },
)
