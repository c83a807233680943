// Browsers in which a person has signed in before (OWASP's device cookies). Each has its own attempt limit, so an
// attacker elsewhere can't lock the owner out. Nothing is stored: the password hash is the key, so a new password
// invalidates every cookie.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { User } from '../../../generated/client.ts'

type Person = Pick<User, 'id' | 'passwordHash'>

const sign = ({ id, passwordHash }: Person, name: string) =>
  createHmac('sha256', passwordHash!).update(`known browser ${name} of ${id}`).digest()

/** The cookie value to set after a sign-in. The person must have a password. */
export function newKnownBrowser(person: Person): string {
  const name = randomBytes(12).toString('base64url')
  return `${name}.${sign(person, name).toString('base64url')}`
}

/** Returns the browser's name if the person has signed in there with their current password. */
export function verifyKnownBrowser(person: Person | null, knownCookie: string | null): string | null {
  if (!person?.passwordHash) return null
  const [name = '', signature = ''] = (knownCookie ?? '').split('.')
  const given = Buffer.from(signature, 'base64url')
  const expected = sign(person, name)
  return given.length === expected.length && timingSafeEqual(given, expected) ? name : null
}
