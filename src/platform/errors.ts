// Every error that a client can receive: a stable code with its title, cause and fix.

type Entry = { title: string; cause: string; cure: string }

export const faults = {
  invalid_json: {
    title: 'The body is not valid JSON',
    cause: 'The request body is not valid UTF-8 encoded JSON.',
    cure: 'Check quotes, trailing commas and the encoding (UTF-8).',
  },
  invalid_request: {
    title: 'The request is malformed',
    cause: 'The URL or a header of the request is not valid HTTP, or is not encoded correctly.',
    cure: 'See `detail`. Percent-encode the path and query.',
  },
  request_timeout: {
    title: 'The request took too long to arrive',
    cause: 'The request headers or the body did not arrive in time.',
    cure: 'Retry. Send large files in chunks.',
  },
  headers_too_large: {
    title: 'The headers are too large',
    cause: 'The URL and headers of the request exceed 16 KiB.',
    cure: 'Keep them under 16 KiB.',
  },
  invalid_cursor: {
    title: 'The cursor is not valid',
    cause: '`cursor` was modified or truncated, or belongs to another list or sort order.',
    cure: 'Start again without `cursor`. Pass cursors and filters back unchanged.',
  },
  invalid_idempotency_key: {
    title: 'The Idempotency-Key is malformed',
    cause: '`Idempotency-Key` must be 1 to 255 printable ASCII characters.',
    cure: 'Send a UUID or another short ASCII string.',
  },
  unknown_api_version: {
    title: 'The API version does not exist',
    cause: '`Api-Version` names a version that this server does not support.',
    cure: 'Omit `Api-Version`, or send a supported one.',
  },
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
  account_suspended: {
    title: 'The account is suspended',
    cause: 'The operator of this platform suspended the account.',
    cure: 'Contact the operator.',
  },
  quota_exceeded: {
    title: 'The account has reached a limit',
    cause: 'The account has reached the limit named in `limit`; `used` and `max` give the numbers.',
    cure: 'Delete what you don’t need, or ask the operator to raise `limit`.',
  },
  cross_origin: {
    title: 'The request comes from another site',
    cause:
      'Sign-in requests must come from the console’s own pages, with `Sec-Fetch-Site: same-origin` or an `Origin` that ' +
      'matches `BASE_URL`.',
    cure: 'Open the console at its own URL.',
  },
  insecure_origin: {
    title: 'Sign-in needs HTTPS',
    cause: '`BASE_URL` is an `http://` URL other than localhost, where browsers do not store secure cookies.',
    cure: 'Set `BASE_URL` to an https:// URL, or use http://localhost.',
  },
  not_signed_in: {
    title: 'You are not signed in',
    cause: 'The request has no session, or the session has ended.',
    cure: 'Sign in.',
  },
  link_not_valid: {
    title: 'The link is not valid',
    cause: 'The link does not exist, has expired, or was already used or revoked.',
    cure: 'Ask for a new link. On the server, `berth users link <email>` creates one.',
  },
  authorization_pending: {
    title: 'The sign-in is not approved yet',
    cause: 'The user has not approved or denied the sign-in in the console yet.',
    cure: 'Poll again after `interval` seconds.',
  },
  slow_down: {
    title: 'The client polls too often',
    cause: 'The client polled again before `interval` seconds had passed.',
    cure: 'Add five seconds to the interval.',
  },
  expired_token: {
    title: 'The device code is no longer valid',
    cause: 'The device code was used, has expired, or never existed.',
    cure: 'Run `berth login` again.',
  },
  access_denied: {
    title: 'The sign-in was denied',
    cause: 'The user denied the sign-in in the console, or no longer has the permissions they approved.',
    cure: 'Start again and approve the sign-in.',
  },
  sign_in_first: {
    title: 'Sign in to accept this invitation',
    cause: 'The invited person already has a user here, and the link may have been seen by others.',
    cure: 'Sign in as that person, then open the link again.',
  },
  https_required: {
    title: 'HTTPS is required',
    cause: 'The request came over plain HTTP from another machine, so its token may have been intercepted.',
    cure: 'Use the https:// URL, and revoke the token you sent in the clear.',
  },
  not_found: {
    title: 'There is no such resource',
    cause: 'The resource does not exist in this account, or the token cannot access it.',
    cure: 'Check the ID, and that the token belongs to the right account.',
  },
  route_not_found: {
    title: 'There is no such path',
    cause: 'The API has no operation at this path.',
    cure: 'Check the path in the reference.',
  },
  method_not_allowed: {
    title: 'The path does not support this method',
    cause: 'The path exists, but does not support this HTTP method.',
    cure: 'Use a method from the `Allow` header.',
  },
  project_exists: {
    title: 'The project already exists',
    cause: 'The account already has a project with this name.',
    cure: 'Choose another name, or change the existing project.',
  },
  project_has_domains: {
    title: 'The project still has domains',
    cause: 'A project cannot be deleted while domains are attached to it.',
    cure: 'Delete its domains first.',
  },
  deployment_finished: {
    title: 'The deployment has finished',
    cause: 'Only a deployment that is BUILDING can be canceled.',
    cure: 'There is nothing to cancel.',
  },
  deployment_not_ready: {
    title: 'The deployment is not READY',
    cause: 'Only a READY deployment can be promoted or shared.',
    cure: 'Wait until it is READY.',
  },
  preview_not_protected: {
    title: 'The previews are not protected',
    cause: 'The previews of the project are public, so there is no share link to create.',
    cure: 'Share the deployment’s `url`, or turn on `previewProtection`.',
  },
  deployment_in_production: {
    title: 'The deployment is in production',
    cause: 'A deployment cannot be deleted while it serves the project’s production URL.',
    cure: 'Promote another deployment first.',
  },
  deployment_untrusted: {
    title: 'The deployment comes from a fork',
    cause: 'The commit was approved as a preview without the project’s variables. It can never become production.',
    cure: 'Merge the pull request and deploy its target branch.',
  },
  pull_request_changed: {
    title: 'The pull request has a newer commit',
    cause: '`commit` is no longer the latest commit of the pull request.',
    cure: 'Review and approve the latest commit.',
  },
  pull_request_closed: {
    title: 'The pull request is closed',
    cause: 'Only commits of open pull requests are built.',
    cure: 'Reopen the pull request at the repository host.',
  },
  approval_not_needed: {
    title: 'The pull request needs no approval',
    cause: 'The pull request comes from a branch of the project’s own repository, which is deployed without approval.',
    cure: 'Nothing to do: only pull requests from forks need approval.',
  },
  deployment_building: {
    title: 'The deployment is still BUILDING',
    cause: 'A deployment cannot be deleted while it is BUILDING.',
    cure: 'Cancel it first.',
  },
  domain_exists: {
    title: 'The domain is already attached',
    cause: 'The domain is already attached to a project of this account.',
    cure: 'To attach it elsewhere, delete it first.',
  },
  domain_taken: {
    title: 'The domain belongs to another account',
    cause:
      'Another account verified the domain or a parent of it, or removed it less than 7 days ago; or a parent is ' +
      'attached to a project of this account that the token cannot access.',
    cure: 'Ask the other account to remove it, or open a ticket.',
  },
  claim_ended: {
    title: 'The claim has expired',
    cause: 'This account did not verify the domain within 30 days, so we no longer check it.',
    cure: 'Export the zone, delete the domain, and add it again.',
  },
  domain_has_redirects: {
    title: 'Other domains redirect to this one',
    cause: 'A domain that others redirect to cannot be deleted, and cannot redirect itself.',
    cure: 'Change `redirectTo` of the other domains first; null removes it.',
  },
  domain_has_wildcard: {
    title: 'The domain still has its wildcard',
    cause: 'A domain cannot be deleted while its wildcard is attached, because the wildcard uses its zone.',
    cure: 'Delete the wildcard first.',
  },
  record_conflict: {
    title: 'The record conflicts with the zone',
    cause: 'The record already exists, or DNS does not allow it beside an existing record.',
    cure: 'Change or delete the existing record, named in `record`.',
  },
  key_exists: {
    title: 'The key already exists',
    cause: 'The zone already has a key with this name.',
    cure: 'Choose another name, or delete the existing key.',
  },
  zone_follows_primary: {
    title: 'The zone follows a primary',
    cause: 'The zone copies its records from a primary nameserver elsewhere, so you cannot change them here.',
    cure: 'Change records at the primary, or stop following it.',
  },
  dnssec_not_ready: {
    title: 'The key cannot be rolled over now',
    cause: 'The parent zone has no DS record for the current key, or a rollover is already in progress.',
    cure: 'Retry when `GET /dns/{domain}/dnssec` shows `ACTIVE` and only one key.',
  },
  discovery_in_progress: {
    title: 'Another discovery is in progress',
    cause: 'The account is already running a discovery, or too many others are.',
    cure: 'Retry after `Retry-After` seconds.',
  },
  import_in_progress: {
    title: 'Another large import is in progress',
    cause: 'The account is already importing a large zone file. Only one can run at a time.',
    cure: 'Retry after `Retry-After` seconds.',
  },
  upload_offset_wrong: {
    title: 'The chunk does not start at the end of the upload',
    cause: 'The first byte in `Content-Range` is not the next byte that the server expects.',
    cure: 'Continue at the `offset` from `GET /uploads/{sha256}`, or at 0.',
  },
  project_without_repository: {
    title: 'The project has no repository',
    cause: 'The project was created without `repo`, so there is no commit to build.',
    cure: 'Send files as `source`, or set the project’s `repo`.',
  },
  source_incomplete: {
    title: 'Some files of the deployment are missing',
    cause: 'Some files of the deployment were never uploaded, or the platform no longer has them.',
    cure: 'Create a new deployment and upload its files.',
  },
  ticket_closed: {
    title: 'The ticket is closed',
    cause: 'A CLOSED ticket accepts no messages or changes.',
    cure: 'Open a new ticket.',
  },
  invalid_transition: {
    title: 'The state cannot change that way',
    cause: 'The resource cannot move from its current state to the requested one.',
    cure: 'Read the resource again.',
  },
  member_exists: {
    title: 'The person is already a member',
    cause: 'The account already has a member with this email.',
    cure: 'Change the role of that member instead.',
  },
  last_owner: {
    title: 'The account needs an owner',
    cause: 'The last owner of an account cannot leave it or take a lesser role.',
    cure: 'Make another member an owner first.',
  },
  owner_required: {
    title: 'Only an owner can do that',
    cause: 'Only an owner can add, change or remove an owner.',
    cure: 'Ask an owner.',
  },
  account_exists: {
    title: 'The account already exists',
    cause: 'The platform already has an account with this name.',
    cure: 'Choose another name.',
  },
  idempotency_in_progress: {
    title: 'The first request is still in progress',
    cause: 'Another request with the same Idempotency-Key has not finished yet.',
    cure: 'Retry after `Retry-After` seconds.',
  },
  sign_in_failed: {
    title: 'Sign-in failed',
    cause: 'The email, password, code or passkey is wrong.',
    cure: 'Try again. On the server, `berth users link <email>` creates a sign-in link.',
  },
  sign_in_step_over: {
    title: 'The sign-in has to start again',
    cause: 'The previous step was already used, was more than five minutes ago, or happened in another browser.',
    cure: 'Start again in this browser, within five minutes.',
  },
  not_invited: {
    title: 'You have not been invited',
    cause:
      'The identity provider confirmed who you are, but no user here has that identity, and no invitation was sent to an ' +
      'email that the provider has verified.',
    cure: 'Ask a member to invite the email you use at the provider.',
  },
  proof_required: {
    title: 'Confirm your identity',
    cause: 'Changing how you sign in requires your password, or a sign-in less than ten minutes ago.',
    cure: 'Send your password as `current`, or sign in again and retry.',
  },
  last_sign_in_method: {
    title: 'This is your only way to sign in',
    cause: 'Without this passkey, the user could no longer sign in.',
    cure: 'Add another passkey or a password first.',
  },
  passkey_exists: {
    title: 'The passkey already exists',
    cause: 'This passkey was already added.',
    cure: 'Sign in with this passkey, or add another one.',
  },
  totp_exists: {
    title: 'One-time passwords are already set up',
    cause: 'The user already has an authenticator app.',
    cure: 'Remove the authenticator app first.',
  },
  identity_provider_unavailable: {
    title: 'The identity provider is unavailable',
    cause: 'The identity provider did not respond, or its response was invalid.',
    cure: 'Retry later, or sign in another way.',
  },
  precondition_failed: {
    title: 'The resource has changed',
    cause: '`If-Match` does not match the current version of the resource.',
    cure: 'Read the resource again, reapply your change, and send its new ETag.',
  },
  precondition_required: {
    title: 'If-Match is required',
    cause: 'The request replaces a zone that has records, but has no `If-Match`. The response’s `ETag` is its version.',
    cure: 'Send the zone’s ETag as `If-Match`, or `*` to replace any version.',
  },
  body_too_large: {
    title: 'The body is too large',
    cause:
      'The body exceeds the limit of the operation: 64 KiB, 1 MiB for pushes, 8 MiB for uploads, 16 MiB for zone imports.',
    cure: 'Send at most 64 KiB; for pushes 1 MiB, uploads 8 MiB, zone files 16 MiB.',
  },
  unsupported_media_type: {
    title: 'The media type is not supported',
    cause: 'The operation does not support the `Content-Type` of the request.',
    cure: 'Send `application/json`; for zone files `text/dns`, for uploads `application/octet-stream`.',
  },
  validation_failed: {
    title: 'The request is not valid',
    cause: 'One or more fields of the request are missing, unsupported or invalid.',
    cure: 'Fix the fields listed in `errors`.',
  },
  ref_not_found: {
    title: 'The ref does not exist',
    cause: 'The repository of the project has no branch, tag or commit with that name.',
    cure: 'Push the branch, or correct `ref`.',
  },
  idempotency_key_reused: {
    title: 'The Idempotency-Key was already used',
    cause: 'The key was used within the last 24 hours for a request with another path or body.',
    cure: 'Use a new key for each request.',
  },
  rate_limited: {
    title: 'Too many requests',
    cause:
      'The token or account has used up its requests for this minute, the account has too many concurrent requests, the ' +
      'IP address sent too many requests without a valid token, or a project received too many pushes.',
    cure: 'Retry after `Retry-After` seconds. `RateLimit` shows what is left.',
  },
  internal_error: {
    title: 'Something went wrong on our side',
    cause: 'The server hit an unexpected error. The log has it under the `requestId`.',
    cure: 'Retry. If it keeps failing, open a ticket with the `requestId` as `related`.',
  },
  overloaded: {
    title: 'The server is overloaded',
    cause: 'The server has too much work to respond in time, so it refuses some requests.',
    cure: 'Retry after `Retry-After` seconds.',
  },
  database_unavailable: {
    title: 'The database is unavailable',
    cause: 'The server lost its connection to the database. Your change may have been stored.',
    cure: 'Retry after `Retry-After` seconds, with the same `Idempotency-Key`.',
  },
} as const satisfies Record<string, Entry>

export type FaultCode = keyof typeof faults

/** What can be wrong with a field of a request: the codes within a 422. */
export const fieldCodes = [
  ...(['bad_characters', 'bad_format', 'bad_url', 'beside_alias', 'beside_cname', 'cname_at_apex'] as const),
  ...(['ds_at_apex', 'duplicate', 'in_the_past', 'ip_address', 'no_records', 'no_redirect', 'not_allowed'] as const),
  ...([
    'not_found',
    'not_served',
    'not_valid',
    'not_verified',
    'ns_at_apex',
    'ns_at_wildcard',
    'only_one',
    'out_of_range',
  ] as const),
  ...(['outlives_parent', 'own_account', 'platform_name', 'public_suffix', 'quota_exceeded'] as const),
  ...(['redirect_loop', 'ref_not_found', 'repeated', 'required', 'reserved_name', 'revokes_caller'] as const),
  ...(['taken', 'too_common', 'too_long', 'too_short', 'unknown_event', 'unknown_field', 'widens'] as const),
  ...(['wrong', 'wrong_type', 'zone_not_here'] as const),
  ...(['below_dname', 'beside_dname', 'beside_null_mx', 'dname_at_wildcard', 'ds_without_ns'] as const),
  ...(['mx_at_cname', 'points_at_itself', 'second_spf', 'unsupported'] as const),
] as const

export type FieldCode = (typeof fieldCodes)[number]

/** One refused field of a request; `pointer` is a JSON pointer into the part of the request named by `in`. */
export type FieldError = { in: 'body' | 'query' | 'path' | 'header'; pointer: string; code: FieldCode; detail: string }

/** Extra members that a problem may carry beside the common ones. */
export type FaultMembers = {
  errors?: FieldError[]
  requiredScope?: string
  retryAfterSeconds?: number
  allow?: string[]
  /** With precondition_required: the version that is there. */
  etag?: string
  /** With quota_exceeded: the limit's name, how much the account has, and how much it may have. */
  limit?: string
  used?: number
  max?: number
  record?: { id: string; type: string; name: string; value: string }
}

/** An error meant for the caller: `detail` is public, `cause` goes to the log only. */
export class Fault extends Error {
  readonly code: FaultCode
  readonly members: FaultMembers

  constructor(code: FaultCode, detail?: string, members: FaultMembers & { cause?: unknown } = {}) {
    const { cause, ...rest } = members
    super(detail ?? faults[code].cause, { cause })
    this.code = code
    this.members = rest
  }
}

/** A refusal of one field of the body, for the rules that a schema cannot state. */
export function invalidField(pointer: string, code: FieldCode, detail: string): Fault {
  return new Fault('validation_failed', detail, { errors: [{ in: 'body', pointer, code, detail }] })
}
