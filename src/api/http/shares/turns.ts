// Expensive work: each account has one piece in progress on this server, a few wait, and more are refused.
import type { FastifyInstance } from 'fastify'
import { closedByClient, isGone } from '../requests/transport.ts'
import { tooMany } from './rate-limit.ts'

export type Turns = <T>(accountId: string, work: () => Promise<T>) => Promise<T>

/** `what`: what there is too much of, for the error. */
export function createTurns(what: string, maxWaiting: number): Turns {
  /** Requests that wait behind the one in progress. */
  const lines = new Map<string, (() => void)[]>()
  return async (accountId, work) => {
    const line = lines.get(accountId)
    if (!line) lines.set(accountId, [])
    else if (line.length >= maxWaiting)
      throw tooMany(`The account already has ${line.length + 1} ${what} in progress.`, 1)
    else await new Promise<void>((resolve) => line.push(resolve))
    try {
      return await work()
    } finally {
      const next = lines.get(accountId)!.shift()
      if (next) next()
      else lines.delete(accountId)
    }
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    endTurn: (() => void) | null
  }
}

// Both scopes lock the account. In the database, every waiting request would hold a connection.
const lockingScopes = new Set<string | null | undefined>(['tokens:write', 'members:write'])
const maxWaitingChanges = 100

/** Runs changes of an account's tokens and members one at a time, before any of them holds a connection. */
export function takeTurns(app: FastifyInstance): void {
  const inTurn = createTurns('changes of tokens and members', maxWaitingChanges)
  app.decorateRequest('endTurn', null)
  app.addHook('preHandler', (request, _reply, done) => {
    if (
      request.method === 'GET' ||
      request.method === 'HEAD' ||
      !lockingScopes.has(request.routeOptions.config.scope)
    ) {
      return done()
    }
    const turn = () =>
      new Promise<void>((resolve) => {
        request.endTurn = resolve
        done(isGone(request) ? closedByClient() : undefined)
      })
    inTurn(request.actor.accountId, turn).catch(done)
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.endTurn?.()
    done()
  })
}
