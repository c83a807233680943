// Strong ETags of single resources: 304 for a current copy, 412 for a write based on an old one.
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'

/** Passed to a service that changes a resource, which calls it with the view of the locked row. */
export type Precondition = (view: unknown) => void

export function etagOf(view: unknown): string {
  return `"${hash('sha1', JSON.stringify(view), 'base64url')}"`
}

function lists(header: string, etag: string): boolean {
  return header.split(',').some((item) => item.trim() === '*' || item.trim() === etag)
}

/** Answers one resource, or 304 when the reader's copy is current. */
export function sendSingle<T>(request: FastifyRequest, reply: FastifyReply, view: T): T | FastifyReply {
  const etag = etagOf(view)
  reply.header('etag', etag)
  const known = request.headers['if-none-match']
  // If-None-Match uses weak comparison (RFC 9110, 13.1.2), so a W/ prefix added by a proxy is ignored.
  if (known !== undefined && lists(known.replaceAll('W/', ''), etag)) return reply.code(304).send()
  return view
}

export function precondition(request: FastifyRequest): Precondition {
  const wanted = request.headers['if-match']
  return (view) => {
    if (wanted !== undefined && !lists(wanted, etagOf(view))) throw new Fault('precondition_failed')
  }
}
