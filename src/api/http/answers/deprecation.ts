// What is deprecated (RFC 9745): said by the answers that hold it. Nothing goes without a Sunset long before.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'

export type Deprecated = {
  /** Since when, as RFC 9745 writes it. */
  since: string
  /** Left out: by every request. */
  isUsed?(request: FastifyRequest): boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What of the operation is deprecated; the answers to those who use it say so. */
    deprecated?: Deprecated
  }
}

/** The answer holds a new secret as `token`, too, the name that the field had first. Since 2026-11-16. */
export const deprecatedToken: Deprecated = { since: '@1794787200' }

async function announce(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  const { since, isUsed } = request.routeOptions.config.deprecated!
  if (reply.statusCode < 400 && (isUsed?.(request) ?? true)) {
    reply.header('deprecation', since)
    reply.header('link', '</changelog>; rel="deprecation"; type="text/html"')
  }
  return payload
}

/** To be called for every route. */
export function announceDeprecated(route: RouteOptions): void {
  if (route.config?.deprecated) route.onSend = announce
}

/** The view without its secret, under both of its names: what is read later. */
export function withoutSecret<T extends { secret: string; token: string }>(made: T): Omit<T, 'secret' | 'token'> {
  const { secret: _secret, token: _token, ...view } = made
  return view
}
