// Basic-Auth of _headers: which paths need a name and a password, and whether a visitor has sent one.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { fitsSegments, type Pattern, splitPath } from './patterns.ts'

export const hashOf = (credentials: string): Buffer => hash('sha256', credentials, 'buffer')

/** The hash of what nobody has. */
export const nobodys = randomBytes(32)

type Guard = { pattern: Pattern; credentials?: Buffer[] }

/** The hashes of what opens the addresses, one of which is enough; null if they are open to all. */
export function credentialsOf(guards: readonly Guard[], addresses: readonly string[]): Buffer[] | null {
  const found: Buffer[] = []
  const parts = addresses.map(splitPath)
  for (const { pattern, credentials } of guards) {
    if (credentials && parts.some((part) => fitsSegments(pattern, part))) found.push(...credentials)
  }
  return found.length > 0 ? found : null
}

/** All addresses that stand for a file, so that a rule about one of them protects it at each. */
export function addressesOf(file: string): string[] {
  const address = `/${file}`
  if (!address.endsWith('.html')) return [address]
  const bare = address.slice(0, -'.html'.length)
  return bare.endsWith('/index') ? [address, bare, bare.slice(0, -'index'.length)] : [address, bare]
}

/** The name and password that a header has; null if it has none. */
export function givenBy(authorization: string | undefined): string | null {
  const [, encoded] = /^basic +([A-Za-z0-9+/_-]+=*) *$/i.exec(authorization ?? '') ?? []
  return encoded === undefined ? null : Buffer.from(encoded, 'base64').toString()
}

/** Compares with every one, in a time that does not depend on what was sent. */
export function holdsOne(credentials: readonly Buffer[], given: string): boolean {
  const own = hashOf(given)
  let held = false
  for (const one of credentials) held = timingSafeEqual(one, own) || held
  return held
}
