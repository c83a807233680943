// What is deprecated (RFC 9745): said by the answers that hold it. Nothing goes without a Sunset long before.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer holds a new secret as `token`, too, the name that the field had first. */
    deprecatesToken?: boolean
  }
}

// 2026-11-16.
const tokenDeprecatedAt = '@1794787200'

async function announceToken(_request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  if (reply.statusCode < 400) {
    reply.header('deprecation', tokenDeprecatedAt)
    reply.header('link', '</changelog>; rel="deprecation"; type="text/html"')
  }
  return payload
}

/** To be called for every route. */
export function announceDeprecated(route: RouteOptions): void {
  if (route.config?.deprecatesToken) route.onSend = announceToken
}

/** The view without its secret, under both of its names: what is read later. */
export function withoutSecret<T extends { secret: string; token: string }>(made: T): Omit<T, 'secret' | 'token'> {
  const { secret: _secret, token: _token, ...view } = made
  return view
}
