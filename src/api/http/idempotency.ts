// Idempotent POSTs: a repeated request gets the stored response. Work and response commit in one transaction.
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { etagOf } from '../../platform/http/etags.ts'
import { maxUnsplitBytes, parseJson } from '../../platform/http/json-pieces.ts'
import { createPauses, type Pauses } from '../../platform/pauses.ts'
import { placeOf } from '../../platform/secrets/secrets.ts'
import { findAnswer, lockKey, type StoredAnswer, storeAnswer } from '../../services/idempotency/index.ts'
import type { Deps } from './deps.ts'
import { problemOf, statuses, toFault } from './responses/problem.ts'

declare module 'fastify' {
  interface FastifyRequest {
    idempotency: { key: string; fingerprint: Buffer } | null
  }
}

function replay(deps: Deps, request: FastifyRequest, reply: FastifyReply, stored: StoredAnswer): FastifyReply {
  if (!request.idempotency!.fingerprint.equals(Buffer.from(stored.fingerprint)))
    throw new Fault('idempotency_key_reused')
  if (stored.location) reply.header('location', stored.location)
  if (stored.etag) reply.header('etag', stored.etag)
  return reply
    .code(stored.status)
    .header('idempotency-replayed', 'true')
    .type(stored.status < 400 ? 'application/json; charset=utf-8' : 'application/problem+json')
    .serializer((payload: unknown) => payload as string)
    .send(deps.vault.open(stored.sealed, placeOf.answer(request.actor.tokenId, request.idempotency!.key)).toString())
}

/** The body without what JSON leaves to the writer: whitespace, key order, and the notation of numbers and strings. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => (isObject(part) ? sorted(part) : part))
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const sorted = (value: object) => Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))

const itemsAtOnce = 200

/** The same in pieces, for long lists. */
async function* canonicalPieces(value: unknown, pauses: Pauses): AsyncGenerator<string> {
  if (Array.isArray(value) && value.length > itemsAtOnce) {
    for (let at = 0; at < value.length; at += itemsAtOnce) {
      const pause = pauses()
      if (pause) await pause
      yield (at === 0 ? '[' : ',') + canonical(value.slice(at, at + itemsAtOnce)).slice(1, -1)
    }
    yield ']'
  } else if (isObject(value)) {
    let before = '{'
    for (const [key, part] of Object.entries(sorted(value))) {
      yield `${before}${JSON.stringify(key)}:`
      yield* canonicalPieces(part, pauses)
      before = ','
    }
    yield before === '{' ? '{}' : '}'
  } else yield canonical(value)
}

async function fingerprintOf({ url, rawBody }: FastifyRequest): Promise<Buffer> {
  const hash = createHash('sha256').update(`${url}\n`)
  if (!rawBody || rawBody.length === 0) return hash.digest()
  // Parsed again, because the request's body already has defaults, which may change with the server.
  const body = await parseJson(rawBody)
  if (rawBody.length < maxUnsplitBytes) return hash.update(canonical(body)).digest()
  for await (const piece of canonicalPieces(body, createPauses())) hash.update(piece)
  return hash.digest()
}

/** Before a POST runs: reads the key and replays the stored response, if any. */
export function createReplay(deps: Deps) {
  async function replayKnown(request: FastifyRequest, reply: FastifyReply, key: unknown): Promise<boolean> {
    if (typeof key !== 'string' || !/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) {
      throw new Fault('invalid_idempotency_key')
    }
    request.idempotency = { key, fingerprint: await fingerprintOf(request) }
    const stored = await findAnswer(deps.db, request.actor.tokenId, key)
    if (stored) replay(deps, request, reply, stored)
    return stored !== null
  }

  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const key = request.headers['idempotency-key']
    if (request.method !== 'POST' || key === undefined) return void done()
    replayKnown(request, reply, key).then((answered) => answered || done(), done)
  }
}

export type OnceOptions<T, P> = {
  /** Runs first, outside the transaction; for example for requests to other hosts. */
  prepare?(): Promise<P>
  /** Makes the work wait for its turn before it holds a database connection. */
  inTurn?<R>(prepared: P, work: () => Promise<R>): Promise<R>
  work(db: Db, prepared: P): Promise<T>
  /** Nothing is changed, so the request may run again, and its response isn't stored. */
  dry?: boolean
  /** HTTP status of the response. */
  status: number
  /** Path below /api of the created resource. */
  location?(result: T): string
  /** The created resource as a GET shows it, for the ETag; null if it can't be read. Default: the response. */
  shown?(result: T): unknown
}

export type Once = <T, P = undefined>(
  request: FastifyRequest,
  reply: FastifyReply,
  options: OnceOptions<T, P>,
) => Promise<T>

type Answer = { status: number; location: string | null; etag: string | null; text: string }

/** The URL and the version of the created resource. */
function locationOf<T, P>({ status, location, shown = (result) => result }: OnceOptions<T, P>, result: T) {
  if (status !== 201 || !location) return { location: null, etag: null }
  const view = shown(result)
  return { location: `/api${location(result)}`, etag: view === null ? null : etagOf(view) }
}

function setLocation(reply: FastifyReply, { location, etag }: Pick<Answer, 'location' | 'etag'>): void {
  if (location) reply.header('location', location)
  if (etag) reply.header('etag', etag)
}

const atOnce = <R>(_prepared: unknown, work: () => Promise<R>) => work()

/** Runs the work of a POST and sends its result; with an Idempotency-Key, once for all requests with that key. */
export function createOnce(deps: Deps): Once {
  async function store(db: Db, request: FastifyRequest, { text, ...answer }: Answer) {
    const { key, fingerprint } = request.idempotency!
    const sealed = deps.vault.seal(text, placeOf.answer(request.actor.tokenId, key))
    await storeAnswer(db, request.actor.tokenId, key, { fingerprint, sealed, ...answer })
  }

  return async function once(request, reply, options) {
    const { status, work, dry = false, prepare = async () => undefined as never, inTurn = atOnce } = options
    if (!request.idempotency || dry) {
      const prepared = await prepare()
      const result = await inTurn(prepared, () => work(deps.db, prepared))
      setLocation(reply, locationOf(options, result))
      reply.code(status)
      return result
    }
    const { key } = request.idempotency
    const { tokenId } = request.actor
    let answer: { stored: StoredAnswer } | Answer
    let working = false
    try {
      const prepared = await prepare()
      const answerOnce = async (db: Db) => {
        if (!(await lockKey(db, tokenId, key))) {
          throw new Fault('idempotency_in_progress', undefined, { retryAfterSeconds: 1 })
        }
        const stored = await findAnswer(db, tokenId, key)
        if (stored) return { stored }
        working = true
        const result = await work(db, prepared)
        reply.code(status)
        const text = reply.serialize(result as object) as string
        const done = { status, ...locationOf(options, result), text }
        await store(db, request, done)
        return done
      }
      answer = await inTurn(prepared, () => deps.db.$transaction(answerOnce))
    } catch (error) {
      const fault = toFault(error)
      // A conflict that the work found is stored, as its success would be. Anything else may differ next time: a
      // missing resource, a quota, a limit, an outage.
      if (working && statuses[fault.code] === 409) {
        const text = JSON.stringify(problemOf(fault, deps.config.baseUrl, request.id))
        await store(deps.db, request, { status: 409, location: null, etag: null, text })
      }
      throw error
    }
    // Only after the commit: the response must not be sent before its change is durable.
    if ('stored' in answer) return replay(deps, request, reply, answer.stored) as never
    setLocation(reply, answer)
    reply
      .code(status)
      .type('application/json; charset=utf-8')
      .serializer((payload: unknown) => payload as string)
    return reply.send(answer.text) as never
  }
}
