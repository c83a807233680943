// Responses that are the same for everybody: built once, compressed once, and cached by browsers until they change.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { etagIn, etagOfText } from '../../../platform/http/etags.ts'
import { addVary, compress, type Encoding, encodingFor } from './compression.ts'
import { isCurrent } from './etag.ts'

export type PublicAnswer = {
  type: string
  octets: Buffer
  etag: string
  /** A year if the URL contains a hash of the content. Otherwise clients revalidate and usually get 304. */
  caching: 'for ever' | 'ask again'
  encoded: Map<Encoding, Promise<Buffer>>
}

export function publicAnswer(
  type: string,
  content: string | Uint8Array,
  caching: PublicAnswer['caching'] = 'ask again',
): PublicAnswer {
  const octets = Buffer.from(content)
  return { type, octets, etag: etagOfText(octets), caching, encoded: new Map() }
}

function inEncoding(answer: PublicAnswer, encoding: Encoding): Promise<Buffer> {
  const encoded = answer.encoded.get(encoding) ?? compress(answer.octets, encoding, true)
  answer.encoded.set(encoding, encoded)
  return encoded
}

const cacheControl = { 'for ever': 'public, max-age=31536000, immutable', 'ask again': 'public, no-cache' }

export async function sendPublic(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: PublicAnswer,
): Promise<FastifyReply> {
  const encoding = encodingFor(request.headers['accept-encoding'])
  addVary(reply, 'Accept-Encoding')
  reply.header('cache-control', cacheControl[answer.caching])
  // Nothing in it is private.
  reply.header('access-control-allow-origin', '*')
  if (isCurrent(request, reply, encoding ? etagIn(answer.etag, encoding) : answer.etag)) return reply.code(304).send()
  reply.type(answer.type)
  if (!encoding) return reply.send(answer.octets)
  return reply.header('content-encoding', encoding).send(await inEncoding(answer, encoding))
}
