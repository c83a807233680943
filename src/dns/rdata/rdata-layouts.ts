// The rdata of each type as a sequence of fields. Parsing, canonical text and wire format in both directions follow from it.
import { ipv4Octets, ipv4Text, ipv6Octets, ipv6Text } from '../addresses.ts'
import { type Field, splitFields } from '../fields.ts'
import { type Parsed, parsed, refused } from '../parsed.ts'
import { maxRdataOctets, type NamedType } from '../record-types.ts'
import { naptrProblem } from './naptr.ts'
import type { ResolveTarget } from './rdata-fields.ts'
import { address, base64, caaTag, hex, host, hostOrRoot, type Kind, lastText, number, text } from './rdata-kinds.ts'
import type { WireReader } from './wire-reader.ts'

export type Layout = {
  kinds: readonly Kind[]
  // What is wrong with a combination of valid fields.
  check?(texts: string[]): string | null
  // The last field is a name that packets may compress: only in the types of RFC 1035 (RFC 3597, section 4).
  compressed?: true
}

const algorithms: ReadonlyMap<string, number> = new Map([
  ['RSAMD5', 1],
  ['DH', 2],
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
  ['INDIRECT', 252],
  ['PRIVATEDNS', 253],
  ['PRIVATEOID', 254],
])
const certificateTypes: ReadonlyMap<string, number> = new Map([
  ['PKIX', 1],
  ['SPKI', 2],
  ['PGP', 3],
  ['IPKIX', 4],
  ['ISPKI', 5],
  ['IPGP', 6],
  ['ACPKIX', 7],
  ['IACPKIX', 8],
  ['URI', 253],
  ['OID', 254],
])

// Checks the length of data against a type number in another field.
function sized(label: string, typeAt: number, lengths: Readonly<Record<string, number>>): Layout['check'] {
  return (texts) => {
    const wanted = lengths[texts[typeAt] ?? '']
    const digits = texts.at(-1)?.length ?? 0
    if (wanted === undefined || digits === wanted * 2) return null
    return `The ${label} has ${digits} hexadecimal digits; its type needs ${wanted * 2}.`
  }
}

// The one value that asks the parent to remove the DS records (RFC 8078, section 4).
function orDeletion(deletion: string, algorithmAt: number, check?: Layout['check']): Layout['check'] {
  return (texts) => {
    if (texts[algorithmAt] !== '0') return check?.(texts) ?? null
    return texts.join(' ') === deletion
      ? null
      : `With algorithm 0 the value is ${deletion}, which asks to remove the DS.`
  }
}

const algorithm = number(1, { label: 'algorithm', names: algorithms })
const digest = [number(2, { label: 'key tag' }), algorithm, number(1, { label: 'digest type' }), hex('digest')]
const digestSizes = sized('digest', 2, { 1: 20, 2: 32, 3: 32, 4: 48 })

// RFC 7218 reserves 255 for private use in all three.
const association: Layout = {
  kinds: [
    number(1, { label: 'usage', allowed: [0, 1, 2, 3, 255] }),
    number(1, { label: 'selector', allowed: [0, 1, 255] }),
    number(1, { label: 'matching type', allowed: [0, 1, 2, 255] }),
    hex('certificate data'),
  ],
  check: sized('certificate data', 2, { 1: 32, 2: 64 }),
}

const preference = number(2, { label: 'preference' })
const priority = number(2, { label: 'priority' })
const weight = number(2, { label: 'weight' })
// Secondaries check keys of other algorithms, and would refuse the whole zone if one is malformed.
const keyAlgorithms = [0, 3, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16]

export type LaidOut = Exclude<NamedType, 'HTTPS' | 'LOC' | 'SVCB' | 'TXT'>

export const layouts: Readonly<Record<LaidOut, Layout>> = {
  A: { kinds: [address('IPv4', 4, ipv4Octets, ipv4Text)] },
  AAAA: { kinds: [address('IPv6', 16, ipv6Octets, ipv6Text)] },
  ALIAS: { kinds: [host] },
  CAA: { kinds: [number(1, { label: 'flags field' }), caaTag, lastText('value', 0)] },
  CDNSKEY: {
    kinds: [
      number(2, { label: 'flags field' }),
      number(1, { label: 'protocol', allowed: [3] }),
      number(1, { label: 'algorithm', names: algorithms, allowed: keyAlgorithms }),
      base64('key'),
    ],
    check: orDeletion('0 3 0 AA==', 2),
  },
  CDS: { kinds: digest, check: orDeletion('0 0 0 00', 1, digestSizes) },
  CERT: {
    kinds: [
      number(2, { label: 'certificate type', names: certificateTypes }),
      number(2, { label: 'key tag' }),
      algorithm,
      base64('certificate'),
    ],
  },
  CNAME: { kinds: [host], compressed: true },
  DNAME: { kinds: [host] },
  DS: { kinds: digest, check: digestSizes },
  HINFO: { kinds: [text, text] },
  MX: {
    kinds: [preference, hostOrRoot],
    check: ([number, target]) =>
      target === '.' && number !== '0'
        ? 'For a domain that accepts no email, use 0 . with preference 0 (RFC 7505).'
        : null,
    compressed: true,
  },
  NAPTR: {
    kinds: [number(2, { label: 'order' }), preference, text, text, text, hostOrRoot],
    check: naptrProblem,
  },
  NS: { kinds: [host], compressed: true },
  OPENPGPKEY: { kinds: [base64('key')] },
  PTR: { kinds: [host], compressed: true },
  SMIMEA: association,
  SRV: { kinds: [priority, weight, number(2, { label: 'port' }), hostOrRoot] },
  SSHFP: {
    kinds: [number(1, { label: 'algorithm' }), number(1, { label: 'fingerprint type' }), hex('fingerprint')],
    check: sized('fingerprint', 1, { 1: 20, 2: 32 }),
  },
  TLSA: association,
  URI: { kinds: [priority, weight, lastText('target', 1)] },
}

// Types that are stored as TYPEnnn. Secondaries know them, and would refuse a zone if one is malformed.
export const otherLayouts: ReadonlyMap<number, Layout> = new Map<number, Layout>([
  [17, { kinds: [hostOrRoot, hostOrRoot] }],
  [18, { kinds: [number(2, { label: 'subtype' }), host] }],
  [21, { kinds: [preference, host] }],
  [36, { kinds: [preference, host] }],
  [49, { kinds: [base64('identifier')] }],
])

export function readLaidOut(layout: Layout, fields: Field[], resolve: ResolveTarget): Parsed<string> {
  const { kinds, check } = layout
  const { length } = kinds
  const endless = kinds.at(-1)?.rest === true
  if (endless ? fields.length < length : fields.length !== length) {
    const count = `${fields.length} ${fields.length === 1 ? 'field' : 'fields'}`
    return refused(`The value has ${count} where ${endless ? 'at least ' : ''}${length} belong.`)
  }
  const texts: string[] = []
  for (const [index, kind] of kinds.entries()) {
    const read = kind.read(kind.rest ? fields.slice(index) : fields.slice(index, index + 1), resolve)
    if (!read.ok) return read
    texts.push(read.value)
  }
  const problem = check?.(texts)
  if (problem) return refused(problem)
  const value = texts.join(' ')
  const size = partsOnWire(layout, value).reduce((sum, part) => sum + part.length, 0)
  return size > maxRdataOctets ? refused(`The value is longer than ${maxRdataOctets} octets.`) : parsed(value)
}

// The fields of a canonical value, each in wire format.
export function partsOnWire({ kinds }: Layout, value: string): Buffer[] {
  const fields = value.includes('"') ? splitFields(value) : null
  const raws = fields?.ok ? fields.value.map(({ raw }) => raw) : value.split(' ')
  return kinds.map((kind, index) => kind.toWire(raws[index] ?? ''))
}

// Not canonical: escapes, and values that the parser of text would refuse, stay as they are.
export function textFromWire({ kinds }: Layout, wire: WireReader): string {
  return kinds.map((kind) => kind.fromWire(wire)).join(' ')
}
