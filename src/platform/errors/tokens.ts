// Errors of tokens: missing, invalid, or without the permission that an operation needs.

export const tokenErrors = {
  missing_token: {
    title: 'A token is required',
    cause: 'The request has no `Authorization: Bearer <token>` header.',
    cure: 'Send `Authorization: Bearer <token>`.',
  },
  invalid_token: {
    title: 'The token is not valid',
    cause: 'The bearer token is malformed or does not exist.',
    cure: 'Check that you copied the whole token.',
  },
  token_expired: {
    title: 'The token has expired',
    cause: 'The token has passed its `expiresAt`.',
    cure: 'Create a new token.',
  },
  token_revoked: {
    title: 'The token was revoked',
    cause: 'The token was deleted or replaced by rotation.',
    cure: 'Create a new token.',
  },
  invalid_signature: {
    title: 'The push signature is not valid',
    cause: 'The signature does not match the body and the hook’s secret, or the push hook does not exist.',
    cure: 'Copy the hook’s URL and secret to the repository host again.',
  },
  oidc_token_refused: {
    title: 'The OIDC token was refused',
    cause:
      'The token is malformed, expired, already exchanged or not signed by its issuer, or no project trusts its claims.',
    cure: 'Compare the claims of a new token with `GET /projects/{project}/oidc`.',
  },
  insufficient_scope: {
    title: 'The token lacks a scope',
    cause: 'The operation needs the scope in `requiredScope`, which the token does not have.',
    cure: 'Use a token with the scope in `requiredScope`.',
  },
  token_limited_to_records: {
    title: 'The token is limited to some records',
    cause: 'The token’s `zones` limit it to certain records, and the operation affects something else.',
    cure: 'Use a token without `zones`, or with this name and type in them.',
  },
  token_limited_to_projects: {
    title: 'The token is limited to some projects',
    cause:
      'The token’s `projects` limit it to certain projects, and the operation affects the whole account or a name below ' +
      'another project’s domain.',
    cure: 'Use a token without `projects`.',
  },
  token_outlives_caller: {
    title: 'The token outlives the calling token',
    cause: 'Rotation returns a new secret, so a token cannot rotate one that expires later than itself.',
    cure: 'Rotate it with itself, or with a token that expires no earlier.',
  },
} as const
