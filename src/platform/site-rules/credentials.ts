// Basic-Auth in _headers: which paths need a name and password, and whether a visitor sent a valid one.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { matchesPattern, type Pattern, splitPath } from './patterns.ts'

export const hashOf = (credentials: string): Buffer => hash('sha256', credentials, 'buffer')

/** A hash that no credentials match. */
export const unmatchable = randomBytes(32)

type Guard = { pattern: Pattern; credentials?: Buffer[] }

/** The hashes that give access to the addresses, any of which is enough; null if they are public. */
export function credentialsOf(guards: readonly Guard[], addresses: readonly string[]): Buffer[] | null {
  const found: Buffer[] = []
  const parts = addresses.map(splitPath)
  for (const { pattern, credentials } of guards) {
    if (credentials && parts.some((part) => matchesPattern(pattern, part))) found.push(...credentials)
  }
  return found.length > 0 ? found : null
}

/** All addresses of a file, so that a rule for one of them protects the file at each. */
export function addressesOf(file: string): string[] {
  const address = `/${file}`
  if (!address.endsWith('.html')) return [address]
  const bare = address.slice(0, -'.html'.length)
  return bare.endsWith('/index') ? [address, bare, bare.slice(0, -'index'.length)] : [address, bare]
}

/** The name and password in a header; null if it has none. */
export function credentialsIn(authorization: string | undefined): string | null {
  const [, encoded] = /^basic +([A-Za-z0-9+/_-]+=*) *$/i.exec(authorization ?? '') ?? []
  return encoded === undefined ? null : Buffer.from(encoded, 'base64').toString()
}

/** Compares with all of them, in a time that doesn't depend on what was sent. */
export function isAnyOf(credentials: readonly Buffer[], credentialsSent: string): boolean {
  const sent = hashOf(credentialsSent)
  let found = false
  for (const one of credentials) found = timingSafeEqual(one, sent) || found
  return found
}
