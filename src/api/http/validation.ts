// Validation by the routes' TypeBox schemas: strict bodies, converted queries, every bad field named at once.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifyInstance, FastifySchema, FastifySchemaCompiler } from 'fastify'
import { Fault, type FieldError } from '../../platform/errors.ts'

/** The largest body of a request; larger ones are refused before they are read. */
export const bodyLimitBytes = 64 * 1024

type Part = FieldError['in']

const common = { allErrors: true, useDefaults: true, removeAdditional: false, strict: false, verbose: true } as const
// The first pass stops at the first error, and lengths are checked first: a list of ten thousand invalid items gets one
// error for its length, not ten thousand.
const firstFault = new Ajv({ ...common, coerceTypes: false, allErrors: false })
// A query has only text, so numbers and booleans are converted from it; a body must have the right types.
const bodies = new Ajv({ ...common, coerceTypes: false })
const queries = new Ajv({ ...common, coerceTypes: true })
for (const ajv of [firstFault, bodies, queries]) (addFormats as unknown as (ajv: Ajv) => void)(ajv)

const parts: Record<string, Part> = { body: 'body', querystring: 'query', params: 'path', headers: 'header' }

export const compileValidator: FastifySchemaCompiler<FastifySchema> = ({ schema, httpPart }) => {
  const part = parts[httpPart ?? 'body'] ?? 'body'
  const findAll: ValidateFunction = (part === 'body' ? bodies : queries).compile(schema as object)
  const findFirst = part === 'body' ? firstFault.compile(schema as object) : null
  const lists = part === 'query' ? listsIn(schema) : []
  return (data: unknown) => {
    for (const name of lists) splitList(data as Record<string, unknown>, name)
    if (findFirst) {
      if (findFirst(data)) return true
      if (tooLong.has(findFirst.errors![0]!.keyword)) return { error: validationFault(findFirst.errors!, part) }
    }
    return findAll(data) || { error: validationFault(findAll.errors ?? [], part) }
  }
}

/** The parameters of a query that take several values. */
function listsIn(schema: FastifySchema): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown }> }
  return Object.keys(properties).filter((name) => properties[name]!.type === 'array')
}

/** Values that are repeated, or have commas between, as one list without doubles. */
function splitList(query: Record<string, unknown>, name: string): void {
  const given = query[name]
  if (given === undefined) return
  query[name] = [...new Set([given].flat().flatMap((value) => String(value).split(',')))]
}

export function useValidation(app: FastifyInstance): void {
  app.setValidatorCompiler(compileValidator)
}

const tooLong = new Set(['maxItems', 'maxLength', 'maxProperties'])
const mostErrors = 100

function validationFault(errors: ErrorObject[], part: Part): Fault {
  const fields = errors
    .filter((error) => error.keyword !== 'if' && error.keyword !== 'anyOf')
    .slice(0, mostErrors)
    .map((e) => fieldError(e, part))
  const unique = [...new Map(fields.map((field) => [`${field.pointer} ${field.code}`, field])).values()]
  const names = unique.map((field) => (field.pointer === '#' ? 'body' : field.pointer.slice(2).replaceAll('/', '.')))
  const where = part === 'body' ? '' : ` of the ${part}`
  return new Fault('validation_failed', `Not valid: ${[...new Set(names)].join(', ')}${where}.`, { errors: unique })
}

function fieldError(error: ErrorObject, part: Part): FieldError {
  // A value of a list in a query is named by its parameter.
  const at = `#${part === 'query' ? error.instancePath.replace(/\/\d+$/, '') : error.instancePath}`
  const expected = (error.parentSchema as { description?: string } | undefined)?.description
  const { params } = error
  switch (error.keyword) {
    case 'required':
      return {
        in: part,
        pointer: `${at}/${pointerPart(params.missingProperty)}`,
        code: 'required',
        detail: 'is required',
      }
    case 'additionalProperties': {
      const known = Object.keys((error.parentSchema as { properties?: object }).properties ?? {})
      const detail = known.length > 0 ? `is not a field here; known are ${known.join(', ')}` : 'is not a field here'
      return { in: part, pointer: `${at}/${pointerPart(params.additionalProperty)}`, code: 'unknown_field', detail }
    }
    case 'type': {
      const detail = at === '#' ? 'a JSON object is required' : `must be ${article(String(params.type))}`
      return { in: part, pointer: at, code: 'wrong_type', detail }
    }
    case 'enum':
      return { in: part, pointer: at, code: 'not_allowed', detail: `must be one of ${params.allowedValues.join(', ')}` }
    case 'pattern':
      return { in: part, pointer: at, code: 'bad_format', detail: expected ?? `must match ${params.pattern}` }
    case 'minLength':
    case 'minItems':
    case 'minProperties':
      return { in: part, pointer: at, code: 'too_short', detail: error.message ?? 'is too short' }
    case 'maxLength':
    case 'maxItems':
      return { in: part, pointer: at, code: 'too_long', detail: error.message ?? 'is too long' }
    case 'minimum':
    case 'maximum':
      return { in: part, pointer: at, code: 'out_of_range', detail: error.message ?? 'is out of range' }
    default:
      return { in: part, pointer: at, code: 'not_valid', detail: error.message ?? 'is not valid' }
  }
}

function article(types: string): string {
  const text = types.replaceAll(',', ' or ')
  return /^[aeiou]/.test(text) ? `an ${text}` : `a ${text}`
}

function pointerPart(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

declare module 'fastify' {
  interface FastifyRequest {
    rawBody: Buffer | null
  }
}

/** JSON bodies: UTF-8 or nothing, and no string that PostgreSQL could not store. */
export function useJsonBodies(app: FastifyInstance): void {
  app.decorateRequest('rawBody', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, raw: Buffer, done) => {
    request.rawBody = raw
    if (raw.length === 0) return done(null, undefined)
    try {
      const text = utf8.decode(raw)
      const body: unknown = JSON.parse(text)
      // NUL and lone surrogates can only be written as escapes, so most bodies need no further check.
      if (text.includes('\\u')) refuseUnstorable(body, 'body')
      done(null, body)
    } catch (error) {
      if (error instanceof Fault) return done(error)
      const reason = error instanceof SyntaxError ? error.message : 'it is not UTF-8'
      done(new Fault('invalid_json', `The body is not valid JSON: ${reason.slice(0, 200)}`, { cause: error }))
    }
  })
}

/** Refuses NUL and lone surrogates; without recursion, because the caller controls the nesting. */
export function refuseUnstorable(value: unknown, part: Part): void {
  const errors: FieldError[] = []
  const stack: [unknown, string][] = [[value, '#']]
  while (stack.length > 0 && errors.length < 20) {
    const [item, pointer] = stack.pop()!
    if (typeof item === 'string') {
      if (item.includes('\0') || !item.isWellFormed()) {
        errors.push({ in: part, pointer, code: 'bad_characters', detail: 'holds NUL or half of a surrogate pair' })
      }
    } else if (item !== null && typeof item === 'object') {
      for (const [key, child] of Object.entries(item)) {
        if (key.includes('\0') || !key.isWellFormed()) {
          errors.push({ in: part, pointer, code: 'bad_characters', detail: 'has a field name with NUL or half a pair' })
        } else stack.push([child, `${pointer}/${pointerPart(key)}`])
      }
    }
  }
  if (errors.length > 0) throw new Fault('validation_failed', 'Some text cannot be stored.', { errors })
}

/** Refuses a body for an operation without one: its fields would otherwise be ignored silently. */
export function refuseUnexpectedBody(schema: FastifySchema | undefined, body: unknown): void {
  if (schema?.body || body === undefined || body === null) return
  if (typeof body === 'object' && !Array.isArray(body) && Object.keys(body).length === 0) return
  const errors: FieldError[] = [
    { in: 'body', pointer: '#', code: 'unknown_field', detail: 'this operation takes no body' },
  ]
  throw new Fault('validation_failed', 'This operation takes no body.', { errors })
}
