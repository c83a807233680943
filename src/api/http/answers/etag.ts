// Strong ETags of single resources: 304 for a current copy, 412 for a write based on an old one.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../../platform/errors.ts'
import { etagOf, etagOfLive, namesEtag, namesVersion } from '../../../platform/http/etags.ts'
import { etagInVersion } from './versions.ts'

/** Passed to a service that changes a resource, which calls it with the view of the locked row. */
export type Precondition = (view: unknown) => void

/** Sets the ETag, and tells whether the reader's copy is current. */
export function isCurrent(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.header('etag', etag)
  const known = request.headers['if-none-match']
  // If-None-Match uses weak comparison (RFC 9110, 13.1.2), so a W/ prefix added by a proxy is ignored.
  return known !== undefined && namesEtag(known.replaceAll('W/', ''), etagInVersion(request, etag))
}

/**
 * Answers one resource, or 304 when the reader's copy is current. `version` where that is more than the view, or less:
 * being used makes no new version of a token.
 */
export function sendSingle<T>(request: FastifyRequest, reply: FastifyReply, view: T, version?: unknown): T {
  return send(request, reply, view, etagOf(version ?? view))
}

/** The same for one that also changes by itself: If-Match compares `version`, If-None-Match all of the view. */
export function sendLive<T>(request: FastifyRequest, reply: FastifyReply, view: T, version: unknown): T {
  return send(request, reply, view, etagOfLive(version, view))
}

function send<T>(request: FastifyRequest, reply: FastifyReply, view: T, etag: string): T {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead) reply.header('etag', etag)
  // Written by the schema of the route: a view may have more than it is to show, in a document of a row.
  if (!isRead || !isCurrent(request, reply, etag)) return view
  // Fastify sends nothing more for a reply that is returned; the type is that of the resource, for the routes.
  return reply.code(304).send() as T
}

/** The same for a resource that is ready to be sent, and whose ETag is known. */
export function sendOctets(request: FastifyRequest, reply: FastifyReply, octets: Buffer, etag: string): FastifyReply {
  return isCurrent(request, reply, etag) ? reply.code(304).send() : reply.send(octets)
}

export function precondition(request: FastifyRequest): Precondition {
  const wanted = request.headers['if-match']
  return (view) => {
    if (wanted === undefined) return
    // What is not there has no version, and `*` does not stand for it.
    if (view === null || !namesVersion(wanted, etagOf(view))) throw new Fault('precondition_failed')
  }
}
