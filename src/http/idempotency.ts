// POSTs that may be sent twice: the stored answer comes back, and the work and its answer commit in one transaction.
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Db, rows, sql } from '../db.ts'
import type { Deps } from '../deps.ts'
import { Fault } from '../errors.ts'
import { problemOf, statuses, toFault } from './problem.ts'

type Stored = { fingerprint: Uint8Array; status: number; location: string | null; sealed: Uint8Array }

declare module 'fastify' {
  interface FastifyRequest {
    idempotency: { key: string; fingerprint: Buffer } | null
  }
}

function replay(deps: Deps, request: FastifyRequest, reply: FastifyReply, stored: Stored): FastifyReply {
  if (!request.idempotency!.fingerprint.equals(Buffer.from(stored.fingerprint)))
    throw new Fault('idempotency_key_reused')
  if (stored.location) reply.header('location', stored.location)
  return reply
    .code(stored.status)
    .header('idempotency-replayed', 'true')
    .type(stored.status < 400 ? 'application/json; charset=utf-8' : 'application/problem+json')
    .serializer((payload: unknown) => payload as string)
    .send(deps.vault.open(stored.sealed).toString())
}

async function findStored(db: Db, tokenId: string, key: string): Promise<Stored | undefined> {
  const [stored] = await rows<Stored>(
    db,
    sql`SELECT fingerprint, status, location, sealed FROM idempotency_key
        WHERE token_id = ${tokenId} AND key = ${key} AND created_at > now() - interval '24 hours'`,
  )
  return stored
}

async function store(
  deps: Deps,
  db: Db,
  request: FastifyRequest,
  status: number,
  location: string | null,
  text: string,
) {
  const { key, fingerprint } = request.idempotency!
  const { tokenId } = request.actor
  await rows(
    db,
    sql`INSERT INTO idempotency_key (token_id, key, fingerprint, status, location, sealed, created_at)
        VALUES (${tokenId}, ${key}, ${fingerprint}, ${status}::int, ${location}, ${deps.vault.seal(text)}, now())
        ON CONFLICT (token_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
          location = excluded.location, sealed = excluded.sealed, created_at = excluded.created_at
          WHERE idempotency_key.created_at <= now() - interval '24 hours'
        RETURNING key`,
  )
}

/** Before a POST runs: takes note of the key, and answers at once when the answer is known. */
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
    const stored = await findStored(deps.db, request.actor.tokenId, key)
    if (stored) replay(deps, request, reply, stored)
    return stored !== undefined
  }

  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const key = request.headers['idempotency-key']
    if (request.method !== 'POST' || key === undefined) return void done()
    replayKnown(request, reply, key).then((answered) => answered || done(), done)
  }
}

export type Once = <T, P = undefined>(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  work: (db: Db, prepared: P) => Promise<T>,
  location?: (made: T) => string,
  /** What must be known before the transaction begins, such as the answer of another host. */
  prepare?: () => Promise<P>,
) => Promise<T>

/** Runs the work of a POST and answers with it; with an Idempotency-Key, once for all requests that carry it. */
export function createOnce(deps: Deps): Once {
  return async function once(request, reply, status, work, location, prepare = async () => undefined as never) {
    if (!request.idempotency) {
      const made = await work(deps.db, await prepare())
      if (location) reply.header('location', `/api${location(made)}`)
      reply.code(status)
      return made
    }
    const { key } = request.idempotency
    const { tokenId } = request.actor
    let answer: { stored: Stored } | { text: string; address: string | null }
    try {
      const prepared = await prepare()
      answer = await deps.db.$transaction(async (db) => {
        // Held until commit or rollback, also by a crash: a key can neither run twice at once nor stay locked.
        const [lock] = await rows<{ held: boolean }>(
          db,
          sql`SELECT pg_try_advisory_xact_lock(hashtextextended(${`${tokenId} ${key}`}, 0)) AS held`,
        )
        if (!lock?.held) throw new Fault('idempotency_in_progress', undefined, { retryAfterSeconds: 1 })
        const stored = await findStored(db, tokenId, key)
        if (stored) return { stored }
        const made = await work(db, prepared)
        const address = location ? `/api${location(made)}` : null
        reply.code(status)
        const text = reply.serialize(made as object) as string
        await store(deps, db, request, status, address, text)
        return { text, address }
      })
    } catch (error) {
      const fault = toFault(error)
      const failed = statuses[fault.code]
      const mayBeRetried = failed >= 500 || failed === 422 || fault.code === 'idempotency_in_progress'
      if (!mayBeRetried) {
        await store(
          deps,
          deps.db,
          request,
          failed,
          null,
          JSON.stringify(problemOf(fault, deps.config.baseUrl, request.id)),
        )
      }
      throw error
    }
    // Only now, after the commit: an answer must not run ahead of what it tells.
    if ('stored' in answer) return replay(deps, request, reply, answer.stored) as never
    if (answer.address) reply.header('location', answer.address)
    reply
      .code(status)
      .type('application/json; charset=utf-8')
      .serializer((payload: unknown) => payload as string)
    return reply.send(answer.text) as never
  }
}
