// The catalogue of everything that can go wrong for a caller: stable codes, each with its cause and its cure.

type Entry = { title: string; cause: string; cure: string }

export const faults = {
  invalid_json: {
    title: 'The body is not valid JSON',
    cause: 'The request body could not be parsed as UTF-8 encoded JSON.',
    cure: 'Send one JSON object, and check quoting and trailing commas.',
  },
  invalid_request: {
    title: 'The request is malformed',
    cause: 'The address or a header of the request breaks HTTP or its encoding.',
    cure: 'Percent-encode the path and the query, and look at the detail of the problem.',
  },
  request_timeout: {
    title: 'The request took too long to arrive',
    cause: 'The head of the request, or its body, did not arrive in time.',
    cure: 'Send the request again. Send large files in pieces.',
  },
  headers_too_large: {
    title: 'The headers are too large',
    cause: 'The address and the headers of the request have more than 16 KiB.',
    cure: 'Shorten the address, or send fewer or shorter headers.',
  },
  invalid_cursor: {
    title: 'The cursor is not one of ours',
    cause: '`cursor` was changed, cut off, or comes from another list or another order.',
    cure: 'Start again without `cursor` and pass `nextCursor` or `latestCursor` on unchanged, with the same filters.',
  },
  invalid_idempotency_key: {
    title: 'The Idempotency-Key is malformed',
    cause: '`Idempotency-Key` must be 1 to 255 printable ASCII characters.',
    cure: 'Send a UUID or another short unique string.',
  },
  unknown_api_version: {
    title: 'The API version does not exist',
    cause: '`Api-Version` names a version that this server does not have.',
    cure: 'Leave the header out, or send a version named in the reference.',
  },
  missing_token: {
    title: 'A token is needed',
    cause: 'The request carries no `Authorization: Bearer <token>` header.',
    cure: 'Send the API token of your account as a bearer token.',
  },
  invalid_token: {
    title: 'The token is not valid',
    cause: 'The bearer token is malformed or unknown.',
    cure: 'Check that the whole token was copied; make a new one if it is lost.',
  },
  token_expired: {
    title: 'The token has expired',
    cause: 'The token passed its `expiresAt`.',
    cure: 'Use another token, or make a new one.',
  },
  token_revoked: {
    title: 'The token was revoked',
    cause: 'The token was deleted or replaced by rotation.',
    cure: 'Use another token, or make a new one.',
  },
  invalid_signature: {
    title: 'The push is not signed by the hook’s secret',
    cause: 'The signature does not belong to the body and the secret, or there is no such push hook.',
    cure: 'Enter the address and the secret of `POST /projects/{project}/hook` at the repository host, as they are.',
  },
  oidc_token_refused: {
    title: 'The token of the issuer is not taken',
    cause:
      'The token is malformed, expired, not signed by its issuer, was exchanged before, or no project trusts its claims.',
    cure: 'Ask the issuer for a new token with the right audience, and compare it with `GET /projects/{project}/oidc`.',
  },
  insufficient_scope: {
    title: 'The token lacks a scope',
    cause: 'The operation needs a scope that the token does not have; `requiredScope` names it.',
    cure: 'Use a token with that scope.',
  },
  token_limited_to_records: {
    title: 'The token is limited to some records',
    cause: 'The token is narrowed to parts of zones by `zones`, and the operation concerns something else.',
    cure: 'Use a token without `zones`, or one whose `zones` have the name and the type.',
  },
  token_limited_to_projects: {
    title: 'The token is limited to some projects',
    cause:
      'The operation concerns the whole account, or a name below a domain of another project, but the token is narrowed ' +
      'to certain projects.',
    cure: 'Use a token without `projects`.',
  },
  token_outlives_caller: {
    title: 'The token lives longer than the calling one',
    cause: 'Rotating hands out a new secret, and the calling token expires before the token to rotate.',
    cure: 'Rotate it with a token that does not expire before it, or with the token itself.',
  },
  account_suspended: {
    title: 'The account is suspended',
    cause: 'The operator of this platform suspended the account.',
    cure: 'Contact the operator.',
  },
  quota_exceeded: {
    title: 'A quota of the account is used up',
    cause: 'The account has as many of these as it may; `limit` names the quota, `used` and `max` say how many.',
    cure: 'Free some, or ask the operator for a higher limit. `GET /account` shows all limits and what is used.',
  },
  cross_origin: {
    title: 'The request comes from another site',
    cause:
      'What concerns a sign-in is taken from the console’s own pages alone: by `Sec-Fetch-Site: same-origin`, or an ' +
      '`Origin` that is the one of `BASE_URL`.',
    cure: 'Open the console at its own address. Programs use an API token, and need no sign-in.',
  },
  insecure_origin: {
    title: 'Nobody can sign in over plain HTTP',
    cause: '`BASE_URL` is an `http://` address other than localhost, where browsers keep no secure cookie.',
    cure: 'Serve the console by HTTPS and set `BASE_URL` to that address, or use http://localhost on the machine itself.',
  },
  not_signed_in: {
    title: 'Nobody is signed in',
    cause: 'The request carries no session, or the session has ended.',
    cure: 'Sign in.',
  },
  link_not_valid: {
    title: 'The link is not valid',
    cause: 'There is no such link, or it was used, has expired, or was taken back.',
    cure: 'Ask whoever sent it for a new one; `berth users link <email>` makes one on the server.',
  },
  authorization_pending: {
    title: 'Nobody has approved it yet',
    cause: 'The person has not answered the question at the console.',
    cure: 'Ask again after `interval` seconds.',
  },
  slow_down: {
    title: 'The program asks too often',
    cause: 'The program asked again before `interval` seconds had passed.',
    cure: 'Wait five seconds longer between two questions from now on.',
  },
  expired_token: {
    title: 'The device code is over',
    cause: 'The code was used, has expired, or never was one.',
    cure: 'Begin again: `berth login`.',
  },
  access_denied: {
    title: 'The sign-in was denied',
    cause: 'The person denied it at the console, or may not do what was approved any more.',
    cure: 'Begin again, and approve it.',
  },
  sign_in_first: {
    title: 'The invitation is for somebody who can sign in already',
    cause: 'The invited person is known here. A link that others have seen does not sign them in.',
    cure: 'Sign in as that person, then open the link again.',
  },
  https_required: {
    title: 'Only HTTPS is served',
    cause: 'The request came over plain HTTP from outside the machine, so its token may have been read on the way.',
    cure: 'Use the https:// address, and revoke the token that was sent in the clear.',
  },
  not_found: {
    title: 'There is no such resource',
    cause: 'The resource does not exist in this account, or the token is not allowed to see it.',
    cure: 'Check the identifier, and that the token belongs to the right account.',
  },
  route_not_found: {
    title: 'There is no such path',
    cause: 'No operation of this API has that path.',
    cure: 'Compare the path with the reference.',
  },
  method_not_allowed: {
    title: 'The path does not take this method',
    cause: 'The path exists, but not with this HTTP method; `Allow` lists those it takes.',
    cure: 'Use one of the methods in `Allow`.',
  },
  project_exists: {
    title: 'The project exists already',
    cause: 'The account already has a project of this name.',
    cure: 'Choose another name, or change the existing project with PATCH.',
  },
  project_has_domains: {
    title: 'The project still has domains',
    cause: 'A project cannot be deleted while domains are attached to it.',
    cure: 'Delete its domains first; `GET /domains?project=…` lists them.',
  },
  deployment_finished: {
    title: 'The deployment has finished',
    cause: 'Only a deployment that is BUILDING can be canceled.',
    cure: 'Nothing is left to cancel; delete the deployment if it is not wanted.',
  },
  deployment_not_ready: {
    title: 'The deployment is not READY',
    cause: 'Only a READY deployment can be promoted or shared.',
    cure: 'Wait until it is READY, or take another one.',
  },
  preview_not_protected: {
    title: 'The previews are not protected',
    cause: 'The previews of the project are open to everybody, so there is no link to make.',
    cure: 'Share the deployment’s `url`, or set `previewProtection` of the project first.',
  },
  deployment_in_production: {
    title: 'The deployment serves production',
    cause: 'A deployment cannot be deleted while the project’s production address serves it.',
    cure: 'Promote another deployment first.',
  },
  deployment_untrusted: {
    title: 'The deployment comes from a fork',
    cause:
      'The commit was approved for a preview without the variables of the project. Such a deployment never becomes production.',
    cure: 'Merge the request, and deploy the branch that it was merged into.',
  },
  pull_request_changed: {
    title: 'The pull request has a newer commit',
    cause: '`commit` is no longer the newest commit of the request.',
    cure: 'Look at the newer commit, then approve that one.',
  },
  pull_request_closed: {
    title: 'The pull request is closed',
    cause: 'Only a commit of an open request is built.',
    cure: 'Reopen the request at the repository host.',
  },
  approval_not_needed: {
    title: 'The pull request needs no approval',
    cause: 'The request comes from a branch of the project’s own repository, which is deployed without one.',
    cure: 'Push to the branch, or deploy it by `POST /deployments`.',
  },
  deployment_building: {
    title: 'The deployment is still BUILDING',
    cause: 'A deployment cannot be deleted while it is being built.',
    cure: 'Cancel it first.',
  },
  domain_exists: {
    title: 'The domain is attached already',
    cause: 'This account already attached the domain to one of its projects.',
    cure: 'Read it with `GET /domains/{name}`, or delete it before attaching it elsewhere.',
  },
  domain_taken: {
    title: 'The domain belongs to another account',
    cause:
      'Another account has proved that it owns the domain or one above it, or removed it less than 7 days ago; or one ' +
      'above it is attached to a project of the account that the token does not see.',
    cure: 'Ask that account to remove it, or open a ticket if the domain is yours.',
  },
  claim_ended: {
    title: 'The claim has ended',
    cause: 'Nobody proved within 30 days that this account owns the domain, so it is not checked any more.',
    cure: 'Delete the domain and add it again. `GET /dns/{domain}/zone` saves its records before.',
  },
  domain_has_redirects: {
    title: 'Other domains redirect to this one',
    cause: 'A domain to which others redirect can neither be deleted nor redirect itself.',
    cure: 'Have the others redirect elsewhere first, by `PATCH /domains/{name}` with another `redirectTo`, or null.',
  },
  domain_has_wildcard: {
    title: 'The domain still has its wildcard',
    cause: 'A domain cannot be deleted while its wildcard is attached, because the wildcard lives in its zone.',
    cure: 'Delete the wildcard first, or leave the domain attached.',
  },
  record_conflict: {
    title: 'The record conflicts with the zone',
    cause: 'DNS does not allow the record beside one that is there, or it is there already.',
    cure: 'Change or delete the record named in the problem, or send another one.',
  },
  key_exists: {
    title: 'The key exists already',
    cause: 'The zone already has a key of this name.',
    cure: 'Choose another name, or delete the existing key.',
  },
  zone_follows_primary: {
    title: 'The zone follows a primary',
    cause: 'The records of the zone are those of a nameserver elsewhere, so that they cannot be changed here.',
    cure: 'Change them at the primary, or stop following it by `DELETE /dns/{domain}/secondary`: the records stay.',
  },
  dnssec_not_ready: {
    title: 'The key cannot be rolled over now',
    cause: 'The parent does not show a DS record of the present key, or a rollover is under way already.',
    cure: 'Read `reason` of `GET /dns/{domain}/dnssec`, and ask again when `state` is `ACTIVE` and there is one key.',
  },
  discovery_in_progress: {
    title: 'Another discovery is under way',
    cause: 'The account has the nameservers of a domain asked at the moment, or too many others do.',
    cure: 'Send the request again after the seconds in `Retry-After`.',
  },
  import_in_progress: {
    title: 'Another large import is under way',
    cause: 'The account imports a large zone file at the moment; it can import one at a time.',
    cure: 'Send the request again after the seconds in `Retry-After`.',
  },
  upload_offset_wrong: {
    title: 'The piece does not begin where the upload ends',
    cause: 'The first byte named in `Content-Range` is not the one after those that this server has.',
    cure: 'Read `offset` with `GET /uploads/{sha256}` and go on from there; without an upload there, begin at 0.',
  },
  project_without_repository: {
    title: 'The project has no repository',
    cause: 'The project was made without `repo`, so there is no commit to build.',
    cure: 'Send the files as `source`, or link a repository: `PATCH /projects/{project}` with `repo`.',
  },
  source_incomplete: {
    title: 'Some files of the deployment are missing',
    cause: 'Not all files of the deployment were uploaded, or the platform no longer has them.',
    cure: 'Create a new deployment: `POST /deployments` with `source`.',
  },
  ticket_closed: {
    title: 'The ticket is closed',
    cause: 'A CLOSED ticket takes no more messages and no changes.',
    cure: 'Open a new ticket and mention this one.',
  },
  invalid_transition: {
    title: 'The state cannot change that way',
    cause: 'The resource is in a state from which the wanted one cannot be reached.',
    cure: 'Read the resource again; the reference lists the allowed transitions.',
  },
  member_exists: {
    title: 'The person is a member already',
    cause: 'The account has a member with this address.',
    cure: 'Change the role of the member instead.',
  },
  last_owner: {
    title: 'The account needs an owner',
    cause: 'The last owner of an account can neither leave it nor take a lesser role.',
    cure: 'Make another member an owner first.',
  },
  owner_required: {
    title: 'Only an owner can do that',
    cause: 'The operation makes, changes or removes an owner, and the caller is none.',
    cure: 'Ask an owner of the account.',
  },
  account_exists: {
    title: 'The account exists already',
    cause: 'The platform already has an account of this name.',
    cure: 'Choose another name.',
  },
  idempotency_in_progress: {
    title: 'The first request is still running',
    cause: 'Another request with the same Idempotency-Key has not finished yet.',
    cure: 'Send the request again after the seconds in `Retry-After`.',
  },
  sign_in_failed: {
    title: 'That did not sign you in',
    cause: 'The address and the password, the code or the passkey do not belong together, or there is no such person.',
    cure: 'Try again, or another way to sign in. `berth users link <email>` makes a link that signs in once.',
  },
  sign_in_step_over: {
    title: 'The sign-in has to begin again',
    cause: 'The step before was more than five minutes ago, was used, or was taken in another browser.',
    cure: 'Begin the sign-in again in this browser.',
  },
  not_invited: {
    title: 'Nobody has invited you',
    cause:
      'The identity provider knows who you are, but no person here has that identity, and there is no invitation to an ' +
      'address that the provider has verified.',
    cure: 'Ask a member of the account for an invitation to the address that you have at the provider.',
  },
  proof_required: {
    title: 'Prove once more who you are',
    cause: 'What changes how you sign in needs the password, or a sign-in of less than ten minutes ago.',
    cure: 'Send the password of now as `current`, or sign in again and repeat the request.',
  },
  last_sign_in_method: {
    title: 'It is the only way left to sign in',
    cause: 'Without this passkey the person could not sign in any more.',
    cure: 'Add another passkey or set a password first.',
  },
  passkey_exists: {
    title: 'The passkey is there already',
    cause: 'This passkey was added before.',
    cure: 'Use it to sign in, or add another one.',
  },
  totp_exists: {
    title: 'One-time passwords are set up already',
    cause: 'The person has an authenticator app.',
    cure: 'Remove it first: `DELETE /auth/totp`.',
  },
  identity_provider_unavailable: {
    title: 'The identity provider cannot be reached',
    cause: 'The service that was to say who you are did not answer, or not as it should.',
    cure: 'Try again later, or sign in another way. The log has the reason under the `requestId`.',
  },
  precondition_failed: {
    title: 'The resource has changed',
    cause: '`If-Match` names a version of the resource that is not the current one.',
    cure: 'Read the resource again, redo the change on what you find, and send its new ETag.',
  },
  precondition_required: {
    title: 'The version to replace must be named',
    cause:
      'The request replaces a zone that has records, and carries no `If-Match`. `ETag` of the answer is its version.',
    cure: 'Look at what is there, then send its ETag as `If-Match`, or `If-Match: *` to replace it whatever it is.',
  },
  body_too_large: {
    title: 'The body is too large',
    cause:
      'The body is larger than the operation takes: 64 KiB, for a push 1 MiB, for uploads 8 MiB, for a zone import 16 MiB.',
    cure: 'Send less, or split it into several requests.',
  },
  unsupported_media_type: {
    title: 'The body is not of the expected type',
    cause: 'The operation takes another media type than the request’s `Content-Type`.',
    cure: 'Send `Content-Type: application/json`, for a zone import `text/dns`, for content `application/octet-stream`.',
  },
  validation_failed: {
    title: 'The request is not valid',
    cause: 'One or more fields of the request are missing, unknown or not of the allowed form.',
    cure: 'Correct every field listed in `errors`.',
  },
  ref_not_found: {
    title: 'The ref does not exist',
    cause: 'The repository of the project has no branch, tag or commit of that name.',
    cure: 'Push the branch first, or correct `ref`.',
  },
  idempotency_key_reused: {
    title: 'The Idempotency-Key was used for another request',
    cause: 'The key was used within 24 hours for a request with another path or body.',
    cure: 'Use a new key for every new request.',
  },
  rate_limited: {
    title: 'Too many requests',
    cause:
      'The token or the account used up its requests of the current minute, the account has too many requests open at ' +
      'once, the address sent too many requests without a valid token, or a project got too many pushes.',
    cure: 'Wait for the seconds in `Retry-After`; the `RateLimit` header tells what is left to the token and the account.',
  },
  internal_error: {
    title: 'Something broke on our side',
    cause: 'The server met an error that it did not expect. It is in the log under the `requestId`.',
    cure: 'Try again; if it stays, open a ticket with the `requestId` as `related`.',
  },
  overloaded: {
    title: 'The server is overloaded',
    cause: 'The server has more work than it can answer in time and sheds some of it.',
    cure: 'Send the request again after the seconds in `Retry-After`.',
  },
  database_unavailable: {
    title: 'The database cannot be reached',
    cause:
      'The server lost its database for the moment. What was asked for may have been stored, if that happened at the end.',
    cure: 'Send the request again after the seconds in `Retry-After`, a POST with the same `Idempotency-Key`; it is done once.',
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
