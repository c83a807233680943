// Validation with the routes' TypeBox schemas: strict bodies, converted queries, every invalid field named at once.
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifyInstance, FastifyRequest, FastifySchema, FastifySchemaCompiler } from 'fastify'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { invalidFields, maxFieldErrors, refusedBy } from '../../../platform/fields.ts'
import { pointerPart } from '../../../platform/http/json-pieces.ts'
import { lazily } from './compilers.ts'
import { cutLong, inOrder, soundPart } from './field-order.ts'
import { unstorableIn } from './json-bodies.ts'
import { nearest } from './nearest.ts'

/** Larger bodies are refused before they are read. */
export const bodyLimitBytes = 64 * 1024

type Part = FieldError['in']

/** A service's checks, run on a body without its malformed fields; throws what they refuse. */
export type Meaning = (request: FastifyRequest, body: never) => unknown

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Called only for a malformed body, so that its other errors are reported too. */
    meaning?: Meaning
  }
}

// Schema names are for the document. Here one may be part of another that was compiled before.
const common = {
  useDefaults: true,
  removeAdditional: false,
  strict: false,
  verbose: true,
  addUsedSchema: false,
} as const
// Nearly every body is valid, and finding that out needs no list of errors.
const firstFault = new Ajv({ ...common, coerceTypes: false })
const bodies = new Ajv({ ...common, coerceTypes: false, allErrors: true })
// Queries contain only text, so numbers and booleans are converted. Bodies must have the right types.
const queries = new Ajv({ ...common, coerceTypes: true, allErrors: true })
for (const ajv of [firstFault, bodies, queries]) (addFormats as unknown as (ajv: Ajv) => void)(ajv)

const parts: Record<string, Part> = { body: 'body', querystring: 'query', params: 'path', headers: 'header' }

export const compileValidator: FastifySchemaCompiler<FastifySchema> = ({ schema, httpPart }) =>
  lazily(() => validatorOf(schema, parts[httpPart ?? 'body'] ?? 'body'))

function validatorOf(schema: FastifySchema, part: Part): (data: unknown) => true | { error: Fault } {
  if (part !== 'body') {
    const validate = queries.compile(schema as object)
    const lists = part === 'query' ? listsIn(schema) : []
    return (data: unknown) => {
      for (const name of lists) splitList(data as Record<string, unknown>, name)
      return validate(data) || { error: new ShapeFault(fieldErrors(validate, part)) }
    }
  }
  const faultsOf = bodyFaults(schema)
  return (body: unknown) => {
    const errors = [...unstorableIn(body), ...faultsOf(body)]
    return errors.length === 0 || { error: new ShapeFault(errors) }
  }
}

/** Finds the malformed fields of a body. */
export function bodyFaults(schema: object): (body: unknown) => FieldError[] {
  const isRight = firstFault.compile(schema)
  const findAll = bodies.compile(schema)
  return (body) => {
    if (isRight(body)) return []
    const long = cutLong(schema, body)
    findAll(body)
    return [...long, ...fieldErrors(findAll, 'body')]
  }
}

/** Query parameters that take several values. */
function listsIn(schema: FastifySchema): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: unknown }> }
  return Object.keys(properties).filter((name) => properties[name]!.type === 'array')
}

/** Repeated or comma-separated values as one list without duplicates. */
function splitList(query: Record<string, unknown>, name: string): void {
  const text = query[name]
  if (text === undefined) return
  query[name] = [...new Set([text].flat().flatMap((value) => String(value).split(',')))]
}

export function useValidation(app: FastifyInstance): void {
  app.setValidatorCompiler(compileValidator)
}

/** Errors about the shape of a request, thrown before its meaning was checked. */
export class ShapeFault extends Fault {
  constructor(errors: FieldError[]) {
    super('validation_failed', undefined, { errors })
  }
}

/** The fault as sent: every invalid field once, in schema order, whether its shape or its meaning is wrong. */
export async function completeFault(fault: Fault, request: FastifyRequest): Promise<Fault> {
  const { errors } = fault.members
  if (!errors?.[0]) return fault
  const { config, schema = {} } = request.routeOptions
  const isBody = errors[0].in === 'body'
  const meaning = isBody && fault instanceof ShapeFault ? config.meaning : undefined
  const more = meaning ? await refusedBy(() => meaning(request, soundPart(request.body, errors) as never)) : []
  const all = inOrder(isBody ? schema.body : schema.querystring, [...errors, ...more])
  const { message, members } = fault instanceof ShapeFault ? invalidFields(all) : fault
  return new Fault(fault.code, message, { ...members, errors: all.slice(0, maxFieldErrors), cause: fault.cause })
}

// More than are reported, because they are sorted first.
const maxLookedAt = 1_000

function fieldErrors(validate: ValidateFunction, part: Part): FieldError[] {
  return (validate.errors ?? [])
    .filter((error) => error.keyword !== 'if' && error.keyword !== 'anyOf')
    .slice(0, maxLookedAt)
    .map((error) => fieldError(error, part))
}

function fieldError(error: ErrorObject, part: Part): FieldError {
  // An item of a query list is reported by its parameter.
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
      const name: string = params.additionalProperty
      return {
        in: part,
        pointer: `${at}/${pointerPart(name)}`,
        code: 'unknown_field',
        detail: unknown(name, known, part),
      }
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

function unknown(name: string, known: string[], part: Part): string {
  const what = part === 'query' ? 'parameter' : 'field'
  if (known.length === 0) return `is not a supported ${what}; there are none`
  const meant = nearest(name, known)
  return `is not a supported ${what}; ${meant ? `did you mean ${meant}?` : `use ${known.join(', ')}`}`
}

function article(types: string): string {
  const text = types.replaceAll(',', ' or ')
  return /^[aeiou]/.test(text) ? `an ${text}` : `a ${text}`
}
