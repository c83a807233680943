// Octets in presentation format: quoted text with escapes, and hexadecimal digits.
import { type Parsed, parsed, refused, shown } from './parsed.ts'

const [backslash, zero, nine] = [0x5c, 0x30, 0x39]

const isDigit = (octet: number | undefined) => octet !== undefined && octet >= zero && octet <= nine

const escapeAt = (octets: Buffer, at: number) => shown(octets.toString('utf8', at - 1).slice(0, 4))

// Decodes the text of a field; characters outside ASCII become their UTF-8 octets. Escapes are decoded in place, because
// none is shorter than its octet.
export function octetsOf(raw: string): Parsed<Buffer> {
  const octets = Buffer.from(raw, 'utf8')
  if (!raw.includes('\\')) return parsed(octets)
  let to = 0
  for (let at = 0; at < octets.length; at++) {
    if (octets[at] !== backslash) {
      octets[to++] = octets[at]!
      continue
    }
    at++
    if (at === octets.length) return refused('A backslash must be followed by a character.')
    if (!isDigit(octets[at])) {
      octets[to++] = octets[at]!
      continue
    }
    if (!isDigit(octets[at + 1]) || !isDigit(octets[at + 2])) {
      return refused(`The escape at ${escapeAt(octets, at)} needs three digits, for example \\034.`)
    }
    const octet = 100 * octets[at]! + 10 * octets[at + 1]! + octets[at + 2]! - 111 * zero
    if (octet > 255)
      return refused(`The escape ${escapeAt(octets, at)} is not an octet; escapes run from \\000 to \\255.`)
    octets[to++] = octet
    at += 2
  }
  return parsed(octets.subarray(0, to))
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

// In upper case, as most tools show DS and TLSA data. Null unless the digits are whole octets.
export function hexOctets(digits: string): string | null {
  return digits.length % 2 === 0 && /^[0-9a-f]+$/i.test(digits) ? digits.toUpperCase() : null
}
