// Parts that the schemas of all resources share.

import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { type FaultCode, faults, fieldCodes } from '../platform/errors.ts'

/** The schema or null, in the form that serializes without trying alternatives. */
export function Nullable<T extends TSchema>(schema: T) {
  const { $id: _named, ...rest } = schema
  const values = schema.enum ? { enum: [...schema.enum, null] } : {}
  return Type.Unsafe<Static<T> | null>({ ...rest, ...values, type: [schema.type, 'null'] })
}

/** A field of a response that refers to a named component of openapi.yaml. */
export function Named<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T>>(Type.Ref(schema.$id!))
}

/** A named component that may be null. */
export function NullableNamed<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ anyOf: [Type.Ref(schema.$id!), { type: 'null' }] })
}

export function Choice<T extends string>(
  values: readonly T[],
  options: { $id?: string; description?: string; default?: NoInfer<T> } = {},
) {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...options })
}

/** A request object: unknown fields are refused, never silently dropped. */
export function Body<T extends TProperties>(
  properties: T,
  options: { $id?: string; description?: string; examples?: unknown[]; minProperties?: number } = {},
): TObject<T> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** An optional request object; without a body, Fastify validates null. */
export function OptionalBody<T extends TObject>(body: T) {
  return Type.Unsafe<Static<T> | null>({ ...body, type: ['object', 'null'] })
}

export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC, milliseconds' })

/** A time in a request; stricter than the format, which allows spaces and partial offsets. */
export const TimestampInput = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?(Z|[+-]\\d{2}:\\d{2})$',
  description: 'must be a time such as 2027-01-31T12:00:00Z',
})

export const ProjectKey = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Name of the project, or its id (prj_…)',
})

/** A query filter that accepts several values, repeated or comma-separated; http/requests/validation.ts splits them. */
export function AnyOf<T extends TSchema>(value: T, description: string, maxItems = 20) {
  return Type.Array(value, {
    minItems: 1,
    maxItems,
    description: `${description}; several values repeated, or with commas between`,
  })
}

/** Limits a list by creation time. */
export const timeQuery = {
  since: Type.Optional({
    ...TimestampInput,
    description: `${TimestampInput.description}; only what was created then or later`,
  }),
  until: Type.Optional({
    ...TimestampInput,
    description: `${TimestampInput.description}; only what was created before`,
  }),
}

export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'How many items at most' })),
  cursor: Type.Optional(
    Type.String({
      maxLength: 2000,
      description: '`nextCursor` of the page before, or a `latestCursor` kept from earlier',
    }),
  ),
  order: Type.Optional(Choice(['asc', 'desc'] as const, { description: 'Direction of the list' })),
}

/** The query of a list: its page and its filters. */
export function ListQuery<T extends TProperties>(filters: T) {
  return Body({ ...pageQuery, ...filters })
}

export const pageEnd = {
  hasMore: Type.Boolean({ description: 'Whether there is a next page now' }),
  nextCursor: Nullable(
    Type.String({ description: 'Pass it as `cursor` to read the next page. Null on the last page' }),
  ),
  latestCursor: Nullable(
    Type.String({
      description:
        'For pollers: where this page ends, also on the last page. Keep it and pass it as `cursor` later to read only ' +
        'what was added since. Null for lists read newest first, and until something was listed',
    }),
  ),
}

export function ListOf<K extends string, T extends TSchema>(key: K, item: T) {
  return Type.Object(
    {
      [key]: Type.Array(Named(item)),
      ...pageEnd,
    } as { [P in K]: ReturnType<typeof Type.Array<TSchema & { static: Static<T> }>> } & typeof pageEnd,
    { $id: `${item.$id}List`, description: `A page of ${key}` },
  )
}

export const waitQuery = Body({
  wait: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 60,
      description: 'Hold the answer until the resource settles, this many seconds at most',
    }),
  ),
})

export const ProblemCode = Choice(Object.keys(faults) as FaultCode[], {
  $id: 'ProblemCode',
  description: 'Stable, for programs; new ones may come, so treat one that you do not know by its status',
})

export const FieldProblemCode = Choice(fieldCodes, {
  $id: 'FieldProblemCode',
  description: 'Stable, for programs; new ones may come, so treat one that you do not know as `not_valid`',
})

export const FieldProblem = Type.Object(
  {
    in: Choice(['body', 'query', 'path', 'header'] as const, { description: 'Part of the request' }),
    pointer: Type.String({ description: 'JSON pointer to the field' }),
    code: Named(FieldProblemCode),
    detail: Type.String(),
  },
  { $id: 'FieldProblem', description: 'One refused field' },
)

export const ConflictingRecord = Type.Object(
  { id: Type.String(), type: Type.String(), name: Type.String(), value: Type.String() },
  { $id: 'ConflictingRecord', description: 'With record_conflict: the record in the way' },
)

export const Problem = Type.Object(
  {
    type: Type.String({ format: 'uri', description: 'Address of the row on this code: cause and cure' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Named(ProblemCode),
    requestId: Type.String(),
    errors: Type.Optional(Type.Array(Named(FieldProblem), { description: 'With 422: every refused field' })),
    requiredScope: Type.Optional(Type.String({ description: 'With insufficient_scope: the scope it needed' })),
    record: Type.Optional(Named(ConflictingRecord)),
    limit: Type.Optional(
      Type.String({
        description: 'With quota_exceeded: the name of the limit, as in `GET /account` where accounts may differ in it',
      }),
    ),
    used: Type.Optional(Type.Integer({ description: 'With quota_exceeded: how much the account has' })),
    max: Type.Optional(Type.Integer({ description: 'With quota_exceeded: how much the account may have' })),
  },
  { $id: 'Problem', description: 'RFC 9457 problem details' },
)
