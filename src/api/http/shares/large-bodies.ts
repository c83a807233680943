// Large bodies are held in memory as a whole until they are answered, so an account sends few of them at once.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { tooMany } from './rate-limit.ts'

const largeBytes = 1 << 20

/** Before the body is read; refuses one that is large, or of a size that nobody knows, beside `most` others. */
export function createLargeBodies(most: number): (request: FastifyRequest, reply: FastifyReply) => void {
  const open = new Map<string, number>()
  return ({ actor: { accountId }, headers }, reply) => {
    const bytes = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
    if (bytes <= largeBytes) return
    const count = open.get(accountId) ?? 0
    if (count >= most) throw tooMany(`The account is already sending ${count} large bodies.`, 1)
    open.set(accountId, count + 1)
    let isOver = false
    const over = () => {
      if (isOver) return
      isOver = true
      const left = open.get(accountId)! - 1
      if (left === 0) open.delete(accountId)
      else open.set(accountId, left)
    }
    reply.raw.once('finish', over)
    reply.raw.once('close', over)
  }
}
