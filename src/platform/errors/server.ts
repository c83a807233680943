// Errors of the server itself.

export const serverErrors = {
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
} as const
