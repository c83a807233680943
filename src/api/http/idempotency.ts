// Idempotent POSTs: a repeated request gets the stored response; work and response commit in one transaction.
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import { placeOf } from '../../platform/secrets.ts'
import { findAnswer, lockKey, type StoredAnswer, storeAnswer } from '../../services/idempotency/keys.ts'
import type { Deps } from '../deps.ts'
import { problemOf, statuses, toFault } from './problem.ts'

declare module 'fastify' {
  interface FastifyRequest {
    idempotency: { key: string; fingerprint: Buffer } | null
  }
}

function replay(deps: Deps, request: FastifyRequest, reply: FastifyReply, stored: StoredAnswer): FastifyReply {
  if (!request.idempotency!.fingerprint.equals(Buffer.from(stored.fingerprint)))
    throw new Fault('idempotency_key_reused')
  if (stored.location) reply.header('location', stored.location)
  return reply
    .code(stored.status)
    .header('idempotency-replayed', 'true')
    .type(stored.status < 400 ? 'application/json; charset=utf-8' : 'application/problem+json')
    .serializer((payload: unknown) => payload as string)
    .send(deps.vault.open(stored.sealed, placeOf.answer(request.actor.tokenId, request.idempotency!.key)).toString())
}

/** Before a POST runs: reads the key, and replays the stored response if there is one. */
export function createReplay(deps: Deps) {
  async function replayKnown(request: FastifyRequest, reply: FastifyReply, key: unknown): Promise<boolean> {
    if (typeof key !== 'string' || !/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) {
      throw new Fault('invalid_idempotency_key')
    }
    const fingerprint = createHash('sha256')
      .update(`${request.url}\n`)
      .update(request.rawBody ?? '')
      .digest()
    request.idempotency = { key, fingerprint }
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
  /** Runs first, outside the transaction, for example for requests to another host. */
  prepare?(): Promise<P>
  work(db: Db, prepared: P): Promise<T>
  /** Nothing is changed, so that the request may run again and its answer, however large, is not kept. */
  dry?: boolean
  /** HTTP status of the response. */
  status: number
  /** Path below /api of the created resource. */
  location?(made: T): string
}

export type Once = <T, P = undefined>(
  request: FastifyRequest,
  reply: FastifyReply,
  options: OnceOptions<T, P>,
) => Promise<T>

type Answer = { status: number; location: string | null; text: string }

/** Runs the work of a POST and sends its result; with an Idempotency-Key, once for all requests with that key. */
export function createOnce(deps: Deps): Once {
  async function store(db: Db, request: FastifyRequest, { status, location, text }: Answer) {
    const { key, fingerprint } = request.idempotency!
    const sealed = deps.vault.seal(text, placeOf.answer(request.actor.tokenId, key))
    await storeAnswer(db, request.actor.tokenId, key, { fingerprint, status, location, sealed })
  }

  return async function once(request, reply, options) {
    const { status, work, location, dry = false, prepare = async () => undefined as never } = options
    if (!request.idempotency || dry) {
      const made = await work(deps.db, await prepare())
      if (location) reply.header('location', `/api${location(made)}`)
      reply.code(status)
      return made
    }
    const { key } = request.idempotency
    const { tokenId } = request.actor
    let answer: { stored: StoredAnswer } | { text: string; address: string | null }
    try {
      const prepared = await prepare()
      answer = await deps.db.$transaction(async (db) => {
        if (!(await lockKey(db, tokenId, key))) {
          throw new Fault('idempotency_in_progress', undefined, { retryAfterSeconds: 1 })
        }
        const stored = await findAnswer(db, tokenId, key)
        if (stored) return { stored }
        const made = await work(db, prepared)
        const address = location ? `/api${location(made)}` : null
        reply.code(status)
        const text = reply.serialize(made as object) as string
        await store(db, request, { status, location: address, text })
        return { text, address }
      })
    } catch (error) {
      const fault = toFault(error)
      const failed = statuses[fault.code]
      const passing = fault.code === 'idempotency_in_progress' || fault.code === 'quota_exceeded'
      const mayBeRetried = failed >= 500 || [422, 429].includes(failed) || passing
      if (!mayBeRetried) {
        const problem = JSON.stringify(problemOf(fault, deps.config.baseUrl, request.id))
        await store(deps.db, request, { status: failed, location: null, text: problem })
      }
      throw error
    }
    // Only after the commit: the response must not be sent before its change is durable.
    if ('stored' in answer) return replay(deps, request, reply, answer.stored) as never
    if (answer.address) reply.header('location', answer.address)
    reply
      .code(status)
      .type('application/json; charset=utf-8')
      .serializer((payload: unknown) => payload as string)
    return reply.send(answer.text) as never
  }
}
