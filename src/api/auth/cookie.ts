// The session cookie. Only /auth reads it; the API itself accepts nothing but bearer tokens.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { refuseOtherSites } from './same-origin.ts'

const name = '__Host-berth'
// `__Host-`: only this exact host can set the cookie. Customers' sites may run on subdomains and sibling domains.
const attributes = 'Path=/; HttpOnly; Secure; SameSite=Strict'
const lifeSeconds = 30 * 24 * 60 * 60

export function setSession(reply: FastifyReply, secret: string): void {
  addCookie(reply, `${name}=${secret}; ${attributes}; Max-Age=${lifeSeconds}`)
}

export function clearSession(reply: FastifyReply): void {
  addCookie(reply, `${name}=; ${attributes}; Max-Age=0`)
}

/** The session secret in the browser's cookie. Throws if another site sent the request. */
export function sessionOf(request: FastifyRequest): string | null {
  refuseOtherSites(request)
  return cookieOf(request, name)
}

/** Null if the cookie is missing or empty. */
export function cookieOf(request: FastifyRequest, cookieName: string): string | null {
  // Browsers write one space, and only this host can set a name that begins with `__Host-`. Trimming more could turn a
  // name that anybody may set into such a name.
  for (const pair of (request.headers.cookie ?? '').split(/; */)) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at) === cookieName) return pair.slice(at + 1) || null
  }
  return null
}

/** Keeps other cookies of the same response. */
export function addCookie(reply: FastifyReply, cookie: string): void {
  const set = reply.getHeader('set-cookie')
  reply.header('set-cookie', set === undefined ? cookie : [set, cookie].flat())
}
