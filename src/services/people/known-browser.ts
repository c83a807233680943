// Browsers in which a person has signed in before. Each has tries of its own, so whoever floods an address from
// elsewhere does not keep its owner out (OWASP's device cookies). Nothing is stored: the hash of the password is the key,
// so a new password ends them all.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const sign = (passwordHash: string, name: string) =>
  createHmac('sha256', passwordHash).update(`known browser ${name}`).digest()

/** What the browser keeps after a sign-in. */
export function newKnownBrowser(passwordHash: string): string {
  const name = randomBytes(12).toString('base64url')
  return `${name}.${sign(passwordHash, name).toString('base64url')}`
}

/** The browser's name, if it has signed in with this password before. */
export function knownBrowserOf(passwordHash: string, kept: string | null): string | null {
  const [name = '', signature = ''] = (kept ?? '').split('.')
  const given = Buffer.from(signature, 'base64url')
  const expected = sign(passwordHash, name)
  return given.length === expected.length && timingSafeEqual(given, expected) ? name : null
}
