// Numbered log lines over HTTP: pages of them, oldest first, and where a stream resumes.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { decodeCursor, pageOf } from '../../../platform/database/page.ts'
import { Fault } from '../../../platform/errors.ts'
import { sendPage } from './page.ts'

type Line = { seq: number }

/** Lines that a stream reads per query. */
export const streamBatch = 500

/** The line number after which a stream resumes; 0 for all lines. */
export const resumeAfter = ({ headers }: FastifyRequest) => sequence(headers['last-event-id'] ?? '0')

/** Sends the page of lines that `read` finds after a line. */
export async function sendLines<T extends Line>(
  request: FastifyRequest,
  reply: FastifyReply,
  { limit = 100, cursor }: { limit?: number | undefined; cursor?: string | undefined },
  read: (after: { seq: number; limit: number }) => Promise<T[]>,
) {
  const seq = cursor === undefined ? 0 : sequence(decodeCursor(cursor, 'lines', 'asc', 1)[0])
  const page = { limit, order: 'asc' as const, after: cursor === undefined ? null : [String(seq)] }
  const rows = await read({ seq, limit: limit + 1 })
  const lines = pageOf(
    rows,
    page,
    (line) => line,
    ({ seq }) => [String(seq)],
  )
  return sendPage(request, reply, page, { lines })
}

function sequence(text: string | string[] | undefined): number {
  if (typeof text !== 'string' || !/^\d{1,9}$/.test(text)) throw new Fault('invalid_cursor')
  return Number(text)
}
