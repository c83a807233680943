// Browsers in which a person has signed in before. Each has tries of its own, so whoever floods an address from
// elsewhere does not keep its owner out (OWASP's device cookies). Nothing is stored: the hash of the password is the key,
// so a new password ends them all.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { User } from '../../../generated/client.ts'

type Person = Pick<User, 'id' | 'passwordHash'>

const sign = ({ id, passwordHash }: Person, name: string) =>
  createHmac('sha256', passwordHash!).update(`known browser ${name} of ${id}`).digest()

/** What the browser keeps after a sign-in; the person has a password. */
export function newKnownBrowser(person: Person): string {
  const name = randomBytes(12).toString('base64url')
  return `${name}.${sign(person, name).toString('base64url')}`
}

/** The browser's name, if the person has signed in there with this password before. */
export function knownBrowserOf(person: Person | null, kept: string | null): string | null {
  if (!person?.passwordHash) return null
  const [name = '', signature = ''] = (kept ?? '').split('.')
  const given = Buffer.from(signature, 'base64url')
  const expected = sign(person, name)
  return given.length === expected.length && timingSafeEqual(given, expected) ? name : null
}
