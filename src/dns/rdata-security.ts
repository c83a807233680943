// Rdata about certificates and keys: CAA, DS and TLSA.
import { octetsOf, quotedOctets } from './octets.ts'
import { parsed, refused, shown } from './parsed.ts'
import { hexData, numbersOf, plainTexts, type RdataReader } from './rdata-fields.ts'
import { highestRdataOctets } from './record-types.ts'

export const parseCaa: RdataReader = (fields) => {
  if (fields.length !== 3) {
    return refused(`The value has ${fields.length} fields where 3 belong; a value with blanks needs quotes.`)
  }
  const texts = plainTexts(fields.slice(0, 2), 2, 2)
  if (!texts.ok) return texts
  const flags = numbersOf(texts.value, [{ called: 'flags field', highest: 255 }])
  if (!flags.ok) return flags
  const tag = (texts.value[1] ?? '').toLowerCase()
  if (!/^[a-z0-9]{1,255}$/.test(tag)) {
    return refused(`The tag ${shown(tag)} is not 1-255 letters and digits, as in issue, issuewild or iodef.`)
  }
  const property = octetsOf(fields[2]?.raw ?? '')
  if (!property.ok) return property
  if (2 + tag.length + property.value.length > highestRdataOctets) {
    return refused(`The value takes more than ${highestRdataOctets} octets.`)
  }
  return parsed(`${flags.value[0]} ${tag} ${quotedOctets(property.value)}`)
}

const dnssecAlgorithms: ReadonlyMap<string, number> = new Map([
  ['RSAMD5', 1],
  ['DSA', 3],
  ['RSASHA1', 5],
  ['NSEC3DSA', 6],
  ['NSEC3RSASHA1', 7],
  ['RSASHA256', 8],
  ['RSASHA512', 10],
  ['ECCGOST', 12],
  ['ECDSAP256SHA256', 13],
  ['ECDSAP384SHA384', 14],
  ['ED25519', 15],
  ['ED448', 16],
])

const digestOctets: ReadonlyMap<number, number> = new Map([
  [1, 20],
  [2, 32],
  [3, 32],
  [4, 48],
])

export const parseDs: RdataReader = (fields) => {
  const texts = plainTexts(fields, 4, Number.POSITIVE_INFINITY)
  if (!texts.ok) return texts
  const numbers = numbersOf(texts.value, [
    { called: 'key tag', highest: 65_535 },
    { called: 'algorithm', highest: 255, names: dnssecAlgorithms },
    { called: 'digest type', highest: 255 },
  ])
  if (!numbers.ok) return numbers
  // A digest is often shown in groups of digits.
  const digits = texts.value.slice(3).join('')
  const digest = hexData(digits, 'digest', digestOctets.get(numbers.value[2] ?? 0), 255)
  return digest.ok ? parsed(`${numbers.value.join(' ')} ${digest.value}`) : digest
}

// 255 is the value that RFC 7218 keeps for private use in all three.
const tlsaFields = [
  { called: 'usage', highest: 255, among: [0, 1, 2, 3, 255] },
  { called: 'selector', highest: 255, among: [0, 1, 255] },
  { called: 'matching type', highest: 255, among: [0, 1, 2, 255] },
]

const matchingOctets: ReadonlyMap<number, number> = new Map([
  [1, 32],
  [2, 64],
])

export const parseTlsa: RdataReader = (fields) => {
  const texts = plainTexts(fields, 4, Number.POSITIVE_INFINITY)
  if (!texts.ok) return texts
  const numbers = numbersOf(texts.value, tlsaFields)
  if (!numbers.ok) return numbers
  const digits = texts.value.slice(3).join('')
  const data = hexData(digits, 'certificate data', matchingOctets.get(numbers.value[2] ?? 0), highestRdataOctets - 3)
  return data.ok ? parsed(`${numbers.value.join(' ')} ${data.value}`) : data
}
