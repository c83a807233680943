// The cookie of a session. It is read by /auth alone; the API itself takes bearer tokens and nothing else.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { refuseOtherSites } from './same-origin.ts'

const name = '__Host-berth'
// `__Host-`: only this very host can set it, not one below or beside it; customers' sites may be both.
const attributes = 'Path=/; HttpOnly; Secure; SameSite=Strict'
const lifeSeconds = 30 * 24 * 60 * 60

export function setSession(reply: FastifyReply, secret: string): void {
  addCookie(reply, `${name}=${secret}; ${attributes}; Max-Age=${lifeSeconds}`)
}

export function clearSession(reply: FastifyReply): void {
  addCookie(reply, `${name}=; ${attributes}; Max-Age=0`)
}

/** The secret of the session that the browser holds; null without one. Throws for a request from another site. */
export function sessionOf(request: FastifyRequest): string | null {
  refuseOtherSites(request)
  return cookieOf(request, name)
}

/** A cookie by its name; null where there is none, or where it is empty. */
export function cookieOf(request: FastifyRequest, wanted: string): string | null {
  // Browsers write one blank, and let nobody else set a name that begins with `__Host-`. To drop more than that would make
  // such a name of one that anybody may set.
  for (const pair of (request.headers.cookie ?? '').split(/; */)) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at) === wanted) return pair.slice(at + 1) || null
  }
  return null
}

/** Beside other cookies of the same answer. */
export function addCookie(reply: FastifyReply, cookie: string): void {
  const set = reply.getHeader('set-cookie')
  reply.header('set-cookie', set === undefined ? cookie : [set, cookie].flat())
}
