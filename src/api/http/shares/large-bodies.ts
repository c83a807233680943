// Large bodies stay in memory until their response is sent, so an account may send only a few at once.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { tooMany } from './rate-limit.ts'

const largeBytes = 1 << 20

/** Called before the body is read; refuses one that is large or of unknown size while `max` others are in progress. */
export function createLargeBodies(max: number): (request: FastifyRequest, reply: FastifyReply) => void {
  const open = new Map<string, number>()
  return ({ actor: { accountId }, headers }, reply) => {
    const bytes = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
    if (bytes <= largeBytes) return
    const count = open.get(accountId) ?? 0
    if (count >= max) throw tooMany(`The account is already sending ${count} large bodies.`, 1)
    open.set(accountId, count + 1)
    let isFinished = false
    const finish = () => {
      if (isFinished) return
      isFinished = true
      const left = open.get(accountId)! - 1
      if (left === 0) open.delete(accountId)
      else open.set(accountId, left)
    }
    reply.raw.once('finish', finish)
    reply.raw.once('close', finish)
  }
}
