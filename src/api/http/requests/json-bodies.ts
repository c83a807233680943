// JSON bodies: valid UTF-8, no duplicate keys, no text that PostgreSQL can't store, and no body where none is expected.
import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { invalidFields } from '../../../platform/fields.ts'
import {
  maxUnsplitBytes,
  parseInPieces,
  pieceText,
  pointerPart,
  RepeatedKey,
  textOf,
  withoutBom,
} from '../../../platform/http/json-pieces.ts'

declare module 'fastify' {
  interface FastifyRequest {
    rawBody: Buffer | null
  }
}

export function useJsonBodies(app: FastifyInstance): void {
  app.decorateRequest('rawBody', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, raw: Buffer, done) => {
    request.rawBody = raw
    if (raw.length === 0) return done(null, undefined)
    if (raw.length > maxUnsplitBytes) {
      return void readLarge(raw).then(
        (body) => done(null, body),
        (error) => done(faultOf(error)),
      )
    }
    try {
      done(null, readBody(raw))
    } catch (error) {
      done(faultOf(error))
    }
  })
}

function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error
  if (error instanceof RepeatedKey) return repeated(JSON.stringify(error.key).slice(0, 100))
  const reason = error instanceof SyntaxError ? error.message : 'it is not UTF-8'
  return new Fault('invalid_json', `The body is not valid JSON: ${reason.slice(0, 200)}`, { cause: error })
}

const repeated = (key: string) =>
  new Fault('invalid_json', `The body is not valid JSON: ${key} appears twice in one object.`)

function readBody(raw: Buffer): unknown {
  const text = textOf(raw)
  const body: unknown = JSON.parse(text)
  if (typeof body !== 'object' || body === null) return body
  // JSON.parse silently keeps the last of two equal keys. Comparing counts detects that without storing any key.
  if (countKeys(raw) !== countFields(body)) throw repeated(repeatedKey(raw))
  // NUL and lone surrogates can only be written as escapes, so most bodies need no further check.
  if (text.includes('\\u')) {
    const errors = findUnstorable(body, 'body')
    if (errors.length > 0) unstorable.set(body, errors)
  }
  return body
}

/** The same as `readBody`, with pauses for other requests. */
async function readLarge(raw: Buffer): Promise<unknown> {
  const errors: FieldError[] = []
  const body = await parseInPieces(withoutBom(raw), (piece, { pointer, from }) => {
    const text = pieceText(piece)
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && countKeys(piece) !== countFields(value)) {
      throw repeated(repeatedKey(piece))
    }
    if (text.includes('\\u') && errors.length < maxUnstorable) errors.push(...unstorableAt(value, pointer, from))
    return value
  })
  if (errors.length > 0 && typeof body === 'object') unstorable.set(body!, errors.slice(0, maxUnstorable))
  return body
}

function unstorableAt(value: unknown, pointer: string, from: number | undefined): FieldError[] {
  if (from === undefined) return findUnstorable(value, 'body', pointer)
  return (value as unknown[]).flatMap((item, index) => findUnstorable(item, 'body', `${pointer}/${from + index}`))
}

const quote = 0x22
const backslash = 0x5c
const colon = 0x3a

/** Calls `each` with the bounds of every key in valid JSON; reading bytes is fastest. */
function eachKey(raw: Buffer, each: (start: number, end: number) => void): void {
  for (let at = 0; at < raw.length; at++) {
    if (raw[at] !== quote) continue
    const start = at
    for (at++; raw[at] !== quote; at++) if (raw[at] === backslash) at++
    let next = at + 1
    while (raw[next]! <= 0x20) next++
    if (raw[next] === colon) each(start, at + 1)
  }
}

function countKeys(raw: Buffer): number {
  let keys = 0
  eachKey(raw, () => keys++)
  return keys
}

/** Without recursion, because the caller controls the nesting. */
function countFields(body: object): number {
  let fields = 0
  const stack: object[] = [body]
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    const values: unknown[] = Array.isArray(item) ? item : Object.values(item)
    if (values !== item) fields += values.length
    for (const value of values) if (typeof value === 'object' && value !== null) stack.push(value)
  }
  return fields
}

/** The first duplicate key, as written. */
function repeatedKey(raw: Buffer): string {
  // Between two keys, braces open and close objects; inside strings nothing does.
  const open: Set<string>[] = []
  let read = 0
  let found = 'a key'
  eachKey(raw, (start, end) => {
    const between = raw.toString('utf8', read, start).replaceAll(/"(\\.|[^"\\])*"/gs, '')
    for (const bracket of between.match(/[{}[\]]/g) ?? []) {
      if (bracket === '{' || bracket === '[') open.push(new Set())
      else open.pop()
    }
    const written = raw.toString('utf8', start, end)
    const known = open.at(-1)!
    const key = JSON.parse(written) as string
    if (found === 'a key' && known.has(key)) found = written.slice(0, 100)
    known.add(key)
    read = end
  })
  return found
}

const unstorable = new WeakMap<object, FieldError[]>()
const maxUnstorable = 20

/** The errors found in the text of a body while it was parsed. */
export function unstorableIn(body: unknown): FieldError[] {
  return (typeof body === 'object' && body !== null && unstorable.get(body)) || []
}

/** Finds NUL and lone surrogates, in the order in which they are written. */
function findUnstorable(value: unknown, part: FieldError['in'], at = '#'): FieldError[] {
  const errors: FieldError[] = []
  const stack: [unknown, string][] = [[value, at]]
  while (stack.length > 0 && errors.length < maxUnstorable) {
    const [item, pointer] = stack.pop()!
    const bad = (detail: string) => errors.push({ in: part, pointer, code: 'bad_characters', detail })
    if (typeof item === 'string') {
      if (!isStorable(item)) bad('contains NUL or a lone surrogate')
    } else if (item !== null && typeof item === 'object') {
      for (const [key, child] of Object.entries(item).reverse()) {
        if (isStorable(key)) stack.push([child, `${pointer}/${pointerPart(key)}`])
        else bad('has a field name that contains NUL or a lone surrogate')
      }
    }
  }
  return errors
}

const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()

export function refuseUnstorable(value: unknown, part: FieldError['in']): void {
  const errors = findUnstorable(value, part)
  if (errors.length > 0) throw invalidFields(errors)
}

/** Refuses a body for an operation without one: its fields would otherwise be ignored silently. */
export function refuseUnexpectedBody(schema: FastifySchema | undefined, body: unknown): void {
  if (schema?.body || body === undefined || body === null) return
  if (typeof body === 'object' && !Array.isArray(body) && Object.keys(body).length === 0) return
  throw invalidFields([
    { in: 'body', pointer: '#', code: 'unknown_field', detail: 'This operation does not accept a body.' },
  ])
}

/** NUL reaches a URL only as an escape, and PostgreSQL can't store it. */
export function refuseUnstorableAddress(request: FastifyRequest): void {
  if (request.is404 || !request.url.includes('%00')) return
  if (JSON.stringify(request.params).includes('\\u0000')) throw new Fault('not_found')
  refuseUnstorable(request.query, 'query')
}
