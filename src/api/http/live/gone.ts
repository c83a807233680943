// Aborts work for a client that has disconnected.
import type { FastifyReply } from 'fastify'
import { Fault } from '../../../platform/errors.ts'

/** Aborts if the client disconnects before it has the response. */
export function untilGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort(new Fault('invalid_request', 'The client disconnected.'))
  })
  return gone.signal
}
