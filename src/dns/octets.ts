// Octets as presentation format writes them: quoted text with escapes, and hexadecimal digits.
import { type Parsed, parsed, refused, shown } from './parsed.ts'

const escapedOctet = /\\(?:(\d{3})|(.))/suy

// The text of one field to its octets; characters outside ASCII stand for their UTF-8 octets.
export function octetsOf(raw: string): Parsed<Buffer> {
  if (!raw.includes('\\')) return parsed(Buffer.from(raw, 'utf8'))
  const parts: Buffer[] = []
  let at = 0
  while (at < raw.length) {
    const backslash = raw.indexOf('\\', at)
    const plainEnd = backslash === -1 ? raw.length : backslash
    if (plainEnd > at) parts.push(Buffer.from(raw.slice(at, plainEnd), 'utf8'))
    if (backslash === -1) break
    escapedOctet.lastIndex = backslash
    const found = escapedOctet.exec(raw)
    if (!found) return refused('A backslash has no character after it.')
    const [whole, digits, character] = found
    if (digits === undefined && /\d/.test(character ?? '')) {
      return refused(
        `The escape at ${shown(raw.slice(backslash, backslash + 4))} needs three digits, for example \\034.`,
      )
    }
    if (digits !== undefined && Number(digits) > 255) {
      return refused(`The escape ${shown(whole)} is not an octet; escapes run from \\000 to \\255.`)
    }
    parts.push(digits === undefined ? Buffer.from(character ?? '', 'utf8') : Buffer.from([Number(digits)]))
    at = backslash + whole.length
  }
  return parsed(Buffer.concat(parts))
}

export function quotedOctets(octets: Uint8Array): string {
  let text = '"'
  for (const octet of octets) {
    if (octet === 0x22 || octet === 0x5c) text += `\\${String.fromCharCode(octet)}`
    else if (octet >= 0x20 && octet < 0x7f) text += String.fromCharCode(octet)
    else text += `\\${octet.toString().padStart(3, '0')}`
  }
  return `${text}"`
}

// Upper case, as DS and TLSA data are shown by most tools. Null unless it is whole octets.
export function hexOctets(digits: string): string | null {
  return digits.length % 2 === 0 && /^[0-9a-f]+$/i.test(digits) ? digits.toUpperCase() : null
}
