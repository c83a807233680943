// Deprecation headers (RFC 9745). Nothing is removed without a Sunset date long before.
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'

export type Deprecated = {
  /** Since when, in the format of RFC 9745. */
  since: string
  /** Default: every request uses it. */
  isUsed?(request: FastifyRequest): boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the operation deprecates; responses to those who use it say so. */
    deprecated?: Deprecated
  }
}

/** The response also holds the new secret as `token`, the field's first name. Since 2026-11-16. */
export const deprecatedToken: Deprecated = { since: '@1794787200' }

async function announce(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  const { since, isUsed } = request.routeOptions.config.deprecated!
  if (reply.statusCode < 400 && (isUsed?.(request) ?? true)) {
    reply.header('deprecation', since)
    reply.header('link', '</changelog>; rel="deprecation"; type="text/html"')
  }
  return payload
}

/** Must be called for every route. */
export function announceDeprecated(route: RouteOptions): void {
  if (route.config?.deprecated) route.onSend = announce
}

/** The token without its secret under either name, as later reads show it. */
export function withoutSecret<T extends { secret: string; token: string }>(token: T): Omit<T, 'secret' | 'token'> {
  const { secret: _secret, token: _token, ...view } = token
  return view
}
