// Two cookies beside that of the session: the step of a sign-in that is under way, and that a person has signed in here.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { newKnownBrowser, stepSeconds } from '../../services/people/index.ts'
import { addCookie, cookieOf } from './cookie.ts'

const stepName = '__Host-berth-step'
const knownName = '__Host-berth-known'
const attributes = 'Path=/; HttpOnly; Secure'
const knownSeconds = 180 * 24 * 60 * 60

/** `Lax` where another site sends the browser back: it would come without a strict one. */
export function setStep(reply: FastifyReply, secret: string, sameSite: 'Strict' | 'Lax' = 'Strict'): void {
  addCookie(reply, `${stepName}=${secret}; ${attributes}; SameSite=${sameSite}; Max-Age=${stepSeconds}`)
}

export function clearStep(reply: FastifyReply): void {
  addCookie(reply, `${stepName}=; ${attributes}; SameSite=Strict; Max-Age=0`)
}

export const stepOf = (request: FastifyRequest) => cookieOf(request, stepName)

export function setKnown(reply: FastifyReply, person: Parameters<typeof newKnownBrowser>[0]): void {
  const kept = newKnownBrowser(person)
  addCookie(reply, `${knownName}=${kept}; ${attributes}; SameSite=Strict; Max-Age=${knownSeconds}`)
}

export const knownOf = (request: FastifyRequest) => cookieOf(request, knownName)
