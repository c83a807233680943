// Limits what is open on this server: requests, waits and streams, per account and in total. Waits and streams of an
// account are limited across all servers.
import { randomInt } from 'node:crypto'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../../../platform/errors.ts'
import { clientOf } from '../../../platform/http/client-address.ts'
import type { OpenKind, SharedLimits } from '../../../services/limits/index.ts'
import { closedByClient, isGone } from '../requests/transport.ts'
import type { Allowance } from './allowance.ts'
import { createHolds } from './holds.ts'
import { tooMany } from './rate-limit.ts'

type Kind = 'requests' | 'waits' | 'streams'

type Share = Record<Kind, number> & { owner: string; full: Partial<Record<OpenKind, Full>> }

/** A limit that was reached: what the account may have here, has elsewhere, and may have in total. */
type Full = { mayHave: number; elsewhere: number; max: number; untilMs: number }

// A client that retries despite a refusal costs nothing more for this long.
const fullMs = 1_000

declare module 'fastify' {
  interface FastifyInstance {
    shares: Shares
  }
  interface FastifyRequest {
    share: Share | null
    shareKind: Kind
    /** Called if the connection closes before the response was sent. */
    whenGone: (() => void) | null
  }
}

export type Shares = {
  /**
   * Counts a request for its owner until its response is sent, or until its connection is closed and its work is done.
   */
  enter(request: FastifyRequest, owner: string): void
  /** Repeats a refusal of `move` from a moment ago, before anything is read. */
  expect(request: FastifyRequest, kind: OpenKind): void
  /** From now on the request counts as a wait or a stream. `whenGone` is called if its connection closes. */
  move(request: FastifyRequest, kind: OpenKind, whenGone: () => void): Promise<void>
  leave(request: FastifyRequest): void
  /** What the account has open on this server. */
  usage(accountId: string): { waits: number; streams: number }
  /** What all accounts have open on this server. */
  readonly open: Readonly<Record<Kind, number>>
}

export type ShareLimits = {
  /** Concurrent requests of one owner. */
  requestsPerOwner: number
  /** For all owners together. */
  requests: number
  waits: number
  streams: number
}

export function decorateShares(app: FastifyInstance): void {
  app.decorateRequest('share', null)
  app.decorateRequest('shareKind', 'requests')
  app.decorateRequest('whenGone', null)
}

/** Releases the share of each request of a plugin. */
export function releaseShares(app: FastifyInstance, shares: Shares): void {
  app.addHook('onSend', (request, _reply, _payload, done) => {
    if (isGone(request)) shares.leave(request)
    done()
  })
  app.addHook('onResponse', (request, _reply, done) => {
    shares.leave(request)
    done()
  })
}

export function createShares(limits: ShareLimits, allowance: Allowance, shared?: SharedLimits): Shares {
  const shares = new Map<string, Share>()
  const holds = shared && createHolds(shared, (owner, kind) => shares.get(owner)?.[kind] ?? 0)
  const open: Record<Kind, number> = { requests: 0, waits: 0, streams: 0 }
  // A response emits nothing if its connection closes while it is queued behind another one (pipelining) or after its
  // request was read, so each connection tracks its own requests.
  const requestsOf = new WeakMap<Socket, Set<FastifyRequest>>()

  function follow(socket: Socket): Set<FastifyRequest> {
    const requests = new Set<FastifyRequest>()
    requestsOf.set(socket, requests)
    socket.once('close', () => {
      for (const request of requests) {
        const { whenGone } = request
        // Abandoned work counts until it ends, so that disconnecting early frees no share.
        if (request.inFlight === null) leave(request)
        whenGone?.()
      }
    })
    return requests
  }

  function leave(request: FastifyRequest): void {
    const { share, shareKind } = request
    if (share === null) return
    request.share = null
    request.whenGone = null
    requestsOf.get(request.raw.socket)?.delete(request)
    open[shareKind]--
    share[shareKind]--
    if (shareKind !== 'requests') holds?.lower(share.owner, shareKind)
    if (share.requests === 0 && share.waits === 0 && share.streams === 0) shares.delete(share.owner)
  }

  return {
    open,
    leave,
    enter(request, owner) {
      const { socket } = request.raw
      if (isGone(request)) throw closedByClient()
      if (open.requests >= limits.requests) throw new Fault('overloaded', undefined, { retryAfterSeconds: 1 })
      let share = shares.get(owner)
      if (share === undefined) {
        share = { owner, requests: 0, waits: 0, streams: 0, full: {} }
        shares.set(owner, share)
      } else if (share.requests >= limits.requestsPerOwner) {
        throw tooMany(`${share.requests} requests are in progress, which is the limit.`, 1)
      }
      open.requests++
      share.requests++
      request.share = share
      const requests = requestsOf.get(socket) ?? follow(socket)
      requests.add(request)
    },
    expect({ share }, kind) {
      const full = share?.full[kind]
      if (!share || !full || full.untilMs < Date.now()) return
      if (share[kind] >= full.mayHave) throw overQuota(kind, share[kind] + full.elsewhere, full.max)
    },
    async move(request, kind, whenGone) {
      const max = await allowance(request.actor, kind)
      const enter = (elsewhere: number, mayHave: number) => {
        const { share } = request
        if (share === null || isGone(request)) throw closedByClient()
        if (share[kind] >= mayHave) {
          share.full[kind] = { mayHave, elsewhere, max, untilMs: Date.now() + fullMs }
          throw overQuota(kind, share[kind] + elsewhere, max)
        }
        if (open[kind] >= limits[kind]) throw new Fault('overloaded', undefined, { retryAfterSeconds: 10 })
        open[request.shareKind]--
        share[request.shareKind]--
        request.shareKind = kind
        open[kind]++
        share[kind]++
        request.whenGone = whenGone
      }
      if (holds) await holds.raise({ owner: request.actor.accountId, kind, max }, enter)
      else enter(0, max)
    },
    usage(accountId) {
      const { waits = 0, streams = 0 } = shares.get(accountId) ?? {}
      return { waits, streams }
    },
  }
}

/** Limits open requests in a plugin without tokens, per address and in total. */
export function boundOpenPerAddress(app: FastifyInstance, perAddress: number, all: number): void {
  const shares = createShares({ requestsPerOwner: perAddress, requests: all, waits: 0, streams: 0 }, () => 0)
  app.addHook('onRequest', async (request) => shares.enter(request, clientOf(request.ip)))
  releaseShares(app, shares)
}

const advice = {
  waits: 'Omit `wait`, or wait for fewer resources at once. The event stream reports all of them.',
  streams: 'Close a stream first. One event stream covers the whole account.',
}

function overQuota(kind: OpenKind, used: number, max: number): Fault {
  const detail = `The account has ${used} open ${kind}; the limit is ${max}. ${advice[kind]}`
  // Random, so that clients refused together don't all come back together.
  const retryAfterSeconds = randomInt(5, 15)
  return new Fault('quota_exceeded', detail, { limit: kind, used, max, retryAfterSeconds })
}
