// Errors of a request as such: its syntax, path, preconditions, Idempotency-Key and rate.

export const malformedRequests = {
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
} as const

export const unknownPaths = {
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
} as const

export const pendingRequests = {
  idempotency_in_progress: {
    title: 'The first request is still in progress',
    cause: 'Another request with the same Idempotency-Key has not finished yet.',
    cure: 'Retry after `Retry-After` seconds.',
  },
} as const

export const refusedRequests = {
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
} as const

export const excessRequests = {
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
} as const
