// Names that can be attached as domains, and their canonical form.
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { parse } from 'tldts'
import type { Config } from '../../config.ts'
import { canonicalName } from '../../dns/names.ts'
import { Fault, type FieldCode, invalidField } from '../../platform/errors.ts'
import { ownNames } from '../../platform/http/own-names.ts'

// Top-level domains that no registry offers (RFC 6761, 6762, 7686, 9476 and ICANN's .internal).
const reservedTopLevels = new Set(['test', 'localhost', 'invalid', 'example', 'local', 'internal', 'onion', 'alt'])
// A developer's machine has no other names to attach.
const developmentTopLevels = new Set(['test', 'localhost'])

const hostLabel = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/

/** Punycode that does not decode to Unicode, or decodes to Unicode that encodes to another label. */
function isBrokenPunycode(label: string): boolean {
  if (!label.startsWith('xn--')) return false
  const unicode = domainToUnicode(`${label}.a`)
  return !/[^\p{ASCII}]/u.test(unicode) || domainToASCII(unicode) !== `${label}.a`
}

export type Reading = { name: string } | { code: FieldCode; detail: string }

/** Canonicalizes a name: lower case, Punycode, no trailing dot; a wildcard keeps its star. */
export function readName(input: string): Reading {
  const text = input.trim().replace(/\.$/, '')
  // Includes spellings that a browser treats as an IP address, such as 0x7f.1.
  if (isIP(text.replace(/^\[|\]$/g, '')) !== 0 || isIP(domainToASCII(text)) !== 0) {
    return { code: 'ip_address', detail: 'must be a domain name, not an IP address' }
  }
  const read = text.includes('\\') ? null : canonicalName(text)
  if (!read?.ok) return { code: 'bad_format', detail: read?.detail ?? 'must be a domain name without backslashes' }
  const host = hostOf(read.value)
  const labels = host.split('.')
  // Certificates allow only host names, while the DNS allows more.
  const malformed = labels.find((label) => !hostLabel.test(label) || isBrokenPunycode(label))
  if (malformed !== undefined) {
    const label = JSON.stringify(malformed)
    return { code: 'bad_format', detail: `must be a host name; the label ${label} is not valid in one` }
  }
  if (/^\d+$/.test(labels.at(-1)!)) return { code: 'bad_format', detail: 'must end in a top-level domain' }
  return { name: read.value }
}

/** The name without the star of a wildcard. */
export function hostOf(name: string): string {
  return name.startsWith('*.') ? name.slice(2) : name
}

export function isWildcard(name: string): boolean {
  return name.startsWith('*.')
}

/** The parents of a name, nearest first. */
export function parentsOf(name: string): string[] {
  const labels = name.split('.')
  return labels.slice(1).map((_, index) => labels.slice(index + 1).join('.'))
}

/** Canonicalizes a name in a path. An invalid name gets a 404. */
export function nameInPath(text: string): string {
  const read = readName(text)
  if (!('name' in read)) throw new Fault('not_found', 'There is no domain with that name.')
  return read.name
}

/** The names of the installation itself, and whether it runs in production. */
export type PlatformNames = Pick<Config, 'baseUrl' | 'nameservers' | 'production'> & {
  edge: Pick<Config['edge'], 'domain'>
}

function platformOwns(platform: PlatformNames, host: string): boolean {
  const { domain, hosts } = ownNames(platform)
  if (host.endsWith(`.${domain}`)) return true
  return [domain, ...hosts].some((name) => host === name || name.endsWith(`.${host}`))
}

/** Canonicalizes a name to attach. Throws if nobody could own it. */
export function nameToAttach(platform: PlatformNames, input: string): string {
  const read = readName(input)
  if (!('name' in read)) throw invalidField('#/name', read.code, read.detail)
  const host = hostOf(read.name)
  if (platformOwns(platform, host)) throw invalidField('#/name', 'platform_name', 'belongs to the platform itself')
  const topLevel = host.slice(host.lastIndexOf('.') + 1)
  if (reservedTopLevels.has(topLevel) && (platform.production || !developmentTopLevels.has(topLevel))) {
    throw invalidField('#/name', 'reserved_name', `is below .${topLevel}, which no registry offers`)
  }
  // Private suffixes too: attaching github.io would claim the names of all its users.
  if (parse(host, { allowPrivateDomains: true }).domain === null) {
    throw invalidField('#/name', 'public_suffix', `${host} is a public suffix; attach a name below it`)
  }
  return read.name
}
