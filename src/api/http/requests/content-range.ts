// Which bytes of some content a request sends (RFC 9110, 14.4).
import type { FastifyRequest } from 'fastify'
import { Fault, type FieldCode } from '../../../platform/errors.ts'

/** `from` is the first byte, `end` the one after the last. */
export type ByteRange = { from: number; end: number; size: number }

export function readContentRange(request: FastifyRequest): ByteRange {
  const { 'content-range': range, 'content-length': length } = request.headers
  if (range === undefined) {
    const size = Number(length ?? (request.body === undefined ? 0 : Number.NaN))
    if (!Number.isSafeInteger(size)) throw invalidHeader('content-length', 'required', 'Content-Length is required.')
    return { from: 0, end: size, size }
  }
  const [, from, last, size] = (/^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(String(range)) ?? []).map(Number)
  if (from === undefined || last === undefined || size === undefined || from > last || last >= size) {
    throw invalidHeader('content-range', 'bad_format', 'Content-Range must look like bytes 0-1048575/5242880.')
  }
  return { from, end: last + 1, size }
}

function invalidHeader(name: string, code: FieldCode, detail: string): Fault {
  return new Fault('validation_failed', detail, { errors: [{ in: 'header', pointer: `#/${name}`, code, detail }] })
}
