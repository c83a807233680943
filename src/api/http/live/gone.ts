// Ends work for a client that is no longer there.
import type { FastifyReply } from 'fastify'
import { Fault } from '../../../platform/errors.ts'

/** Aborts when the client goes away before it has its answer. */
export function untilGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort(new Fault('invalid_request', 'The client disconnected.'))
  })
  return gone.signal
}
