// Strong ETags of single resources: 304 for a current copy, 412 for a write based on an old one.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../../platform/errors.ts'
import { etagOf, etagOfLive, namesEtag, namesVersion } from '../../../platform/http/etags.ts'
import { etagInVersion } from './versions.ts'

/** Services call this with the view of the locked row before they change a resource. */
export type Precondition = (view: unknown) => void

/** Sets the ETag, and returns whether the client's copy is current. */
export function isCurrent(request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  reply.header('etag', etag)
  const known = request.headers['if-none-match']
  // If-None-Match uses weak comparison (RFC 9110, 13.1.2), so a W/ prefix added by a proxy is ignored.
  return known !== undefined && namesEtag(known.replaceAll('W/', ''), etagInVersion(request, etag))
}

/**
 * Responds with one resource, or 304 if the client's copy is current. Pass `version` if the ETag must cover more or
 * less than the view: using a token doesn't change its version.
 */
export function sendSingle<T>(request: FastifyRequest, reply: FastifyReply, view: T, version?: unknown): T {
  return send(request, reply, view, etagOf(version ?? view))
}

/** The same for a resource that also changes without a request: If-Match compares `version`, If-None-Match the whole view. */
export function sendLive<T>(request: FastifyRequest, reply: FastifyReply, view: T, version: unknown): T {
  return send(request, reply, view, etagOfLive(version, view))
}

function send<T>(request: FastifyRequest, reply: FastifyReply, view: T, etag: string): T {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead) reply.header('etag', etag)
  // The route's schema serializes the view, so fields that it doesn't list are never sent.
  if (!isRead || !isCurrent(request, reply, etag)) return view
  // Fastify sends nothing more for a returned reply. The cast keeps the resource's type for the routes.
  return reply.code(304).send() as T
}

/** The same for encoded content whose ETag is known. */
export function sendOctets(request: FastifyRequest, reply: FastifyReply, octets: Buffer, etag: string): FastifyReply {
  return isCurrent(request, reply, etag) ? reply.code(304).send() : reply.send(octets)
}

export function precondition(request: FastifyRequest): Precondition {
  const ifMatch = request.headers['if-match']
  return (view) => {
    if (ifMatch === undefined) return
    // A missing resource has no version, and `*` doesn't match it.
    if (view === null || !namesVersion(ifMatch, etagOf(view))) throw new Fault('precondition_failed')
  }
}
