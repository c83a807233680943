// Every error that a client can receive: a stable code with its title, cause and fix.
import { accountErrors, memberErrors } from './errors/accounts.ts'
import { projectErrors, refErrors, sourceErrors } from './errors/deployments.ts'
import { domainErrors, zoneErrors } from './errors/domains.ts'
import type { FieldCode } from './errors/field-codes.ts'
import { excessRequests, malformedRequests, pendingRequests, refusedRequests, unknownPaths } from './errors/requests.ts'
import { serverErrors } from './errors/server.ts'
import { credentialErrors, sessionErrors } from './errors/sign-in.ts'
import { ticketErrors } from './errors/tickets.ts'
import { tokenErrors } from './errors/tokens.ts'

export { type FieldCode, fieldCodes } from './errors/field-codes.ts'

type Entry = { title: string; cause: string; cure: string }

/** By HTTP status, as the API reference and the guide list them. */
export const faults = {
  ...malformedRequests,
  ...tokenErrors,
  ...accountErrors,
  ...sessionErrors,
  ...unknownPaths,
  ...projectErrors,
  ...domainErrors,
  ...zoneErrors,
  ...sourceErrors,
  ...ticketErrors,
  ...memberErrors,
  ...pendingRequests,
  ...credentialErrors,
  ...refusedRequests,
  ...refErrors,
  ...excessRequests,
  ...serverErrors,
} as const satisfies Record<string, Entry>

export type FaultCode = keyof typeof faults

/** One invalid field of a request. `pointer` is a JSON pointer into the part of the request named by `in`. */
export type FieldError = { in: 'body' | 'query' | 'path' | 'header'; pointer: string; code: FieldCode; detail: string }

/** Members of a problem that only some codes have. */
export type FaultMembers = {
  errors?: FieldError[]
  requiredScope?: string
  retryAfterSeconds?: number
  allow?: string[]
  /** With precondition_required: the current version. */
  etag?: string
  /** With quota_exceeded: the name of the limit, the usage, and the maximum. */
  limit?: string
  used?: number
  max?: number
  record?: { id: string; type: string; name: string; value: string }
}

/** An error for the caller: `detail` is public, `cause` only goes to the log. */
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

/** Rejects one field of the body, for rules that a schema can't express. */
export function invalidField(pointer: string, code: FieldCode, detail: string): Fault {
  return new Fault('validation_failed', detail, { errors: [{ in: 'body', pointer, code, detail }] })
}
