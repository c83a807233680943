// Two more cookies for signing in: the step in progress, and whether this browser is known to the person.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { newKnownBrowser, stepSeconds } from '../../services/people/index.ts'
import { addCookie, cookieOf } from './cookie.ts'

const stepName = '__Host-berth-step'
const knownName = '__Host-berth-known'
const attributes = 'Path=/; HttpOnly; Secure'
const knownSeconds = 180 * 24 * 60 * 60

/** Use `Lax` if another site redirects back here, because browsers then omit strict cookies. */
export function setStep(reply: FastifyReply, secret: string, sameSite: 'Strict' | 'Lax' = 'Strict'): void {
  addCookie(reply, `${stepName}=${secret}; ${attributes}; SameSite=${sameSite}; Max-Age=${stepSeconds}`)
}

export function clearStep(reply: FastifyReply): void {
  addCookie(reply, `${stepName}=; ${attributes}; SameSite=Strict; Max-Age=0`)
}

export const stepOf = (request: FastifyRequest) => cookieOf(request, stepName)

export function setKnown(reply: FastifyReply, person: Parameters<typeof newKnownBrowser>[0]): void {
  const secret = newKnownBrowser(person)
  addCookie(reply, `${knownName}=${secret}; ${attributes}; SameSite=Strict; Max-Age=${knownSeconds}`)
}

export const knownOf = (request: FastifyRequest) => cookieOf(request, knownName)
