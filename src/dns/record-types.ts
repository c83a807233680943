// The record types that a zone may contain, and the rules of each type as data.

export const recordTypes = [
  'A',
  'AAAA',
  'ALIAS',
  'CAA',
  'CDNSKEY',
  'CDS',
  'CERT',
  'CNAME',
  'DNAME',
  'DS',
  'HINFO',
  'HTTPS',
  'LOC',
  'MX',
  'NAPTR',
  'NS',
  'OPENPGPKEY',
  'PTR',
  'SMIMEA',
  'SRV',
  'SSHFP',
  'SVCB',
  'TLSA',
  'TXT',
  'URI',
] as const

export type NamedType = (typeof recordTypes)[number]
// A type that has no name here, with its number (RFC 3597).
export type NumberedType = `TYPE${number}`
export type RecordType = NamedType | NumberedType

const recordTypeSet: ReadonlySet<string> = new Set(recordTypes)

export function isNamedType(text: string): text is NamedType {
  return recordTypeSet.has(text)
}

export const ttlLimits = { min: 30, max: 86_400, default: 300 } as const

// A DKIM key of 4,096 bits needs about 800 octets; above a few KiB, answers no longer fit where resolvers expect them.
export const maxRdataOctets = 4096

export type PolicyRefusal = {
  code: 'cname_at_apex' | 'ds_at_apex' | 'ns_at_apex' | 'ns_at_wildcard' | 'dname_at_wildcard'
  detail: string
}

export type TypePolicy = {
  // Completes the sentence "The value of a … record must be …".
  expects: string
  apex?: PolicyRefusal
  wildcard?: PolicyRefusal
  // Only one record of this type per name.
  single?: true
  // Types that can't exist at the same name.
  excludes: readonly RecordType[] | 'every other type'
}

const typePolicies: Readonly<Record<NamedType, TypePolicy>> = {
  A: { expects: 'one IPv4 address, for example 192.0.2.1', excludes: [] },
  AAAA: { expects: 'one IPv6 address, for example 2001:db8::1', excludes: [] },
  ALIAS: {
    expects: 'one full host name, for example www.example.net',
    single: true,
    // An ALIAS is answered with the addresses of its target, which would mix with the name's own addresses.
    excludes: ['A', 'AAAA'],
  },
  CAA: { expects: 'flags, tag and value, for example 0 issue "letsencrypt.org"', excludes: [] },
  CDNSKEY: { expects: 'flags, protocol 3, algorithm and key in base64, or 0 3 0 AA== to remove the DS', excludes: [] },
  CDS: {
    expects: 'key tag, algorithm, digest type and hexadecimal digest, or 0 0 0 00 to remove the DS',
    excludes: [],
  },
  CERT: {
    expects: 'certificate type, key tag, algorithm and certificate in base64, for example PKIX 0 0 MIIB…',
    excludes: [],
  },
  CNAME: {
    expects: 'one full host name, for example www.example.net',
    apex: {
      code: 'cname_at_apex',
      detail:
        'A CNAME record cannot exist at the apex of a domain, beside its SOA and NS records. Use an ALIAS record, ' +
        'which answers with the addresses of its target.',
    },
    single: true,
    excludes: 'every other type',
  },
  DNAME: {
    expects: 'one full name, for example example.net',
    wildcard: {
      code: 'dname_at_wildcard',
      detail: 'A DNAME record cannot exist at a wildcard name, because resolvers disagree on what it means.',
    },
    single: true,
    // A delegation would hide it (RFC 6672, section 2.3).
    excludes: ['NS', 'DS'],
  },
  DS: {
    expects: 'key tag, algorithm, digest type and hexadecimal digest, for example 12345 13 2 followed by 64 digits',
    apex: {
      code: 'ds_at_apex',
      detail: 'A DS record for the domain itself belongs in its parent zone. Add it at the registrar.',
    },
    excludes: [],
  },
  HINFO: { expects: 'two texts, for example "PC" "Linux"', excludes: [] },
  HTTPS: { expects: 'priority, target and parameters, for example 1 . alpn="h2,h3"', excludes: [] },
  LOC: {
    expects: 'latitude, longitude and altitude, for example 52 22 23.000 N 4 53 32.000 E -2.00m',
    excludes: [],
  },
  MX: { expects: 'preference and mail host, for example 10 mail.example.com', excludes: [] },
  NAPTR: {
    expects:
      'order, preference, flags, services, regexp and replacement, for example 10 20 "s" "SIP+D2U" "" _sip._udp.example.com',
    excludes: [],
  },
  NS: {
    expects: 'one full host name, for example ns1.example.net',
    apex: { code: 'ns_at_apex', detail: 'SOA and NS records at the apex of the domain are managed by the platform.' },
    wildcard: {
      code: 'ns_at_wildcard',
      detail: 'An NS record cannot exist at a wildcard name, because resolvers disagree on what it means.',
    },
    excludes: [],
  },
  OPENPGPKEY: { expects: 'a key in base64', excludes: [] },
  PTR: { expects: 'one full host name, for example host.example.com', excludes: [] },
  SMIMEA: {
    expects: 'usage, selector, matching type and hexadecimal data, for example 3 0 1 followed by 64 digits',
    excludes: [],
  },
  SRV: { expects: 'priority, weight, port and target, for example 0 5 5060 sip.example.com', excludes: [] },
  SSHFP: {
    expects: 'algorithm, fingerprint type and hexadecimal fingerprint, for example 4 2 followed by 64 digits',
    excludes: [],
  },
  SVCB: { expects: 'priority, target and parameters, for example 1 dns.example.com alpn="dot"', excludes: [] },
  TLSA: {
    expects: 'usage, selector, matching type and hexadecimal data, for example 3 1 1 followed by 64 digits',
    excludes: [],
  },
  TXT: { expects: 'text, for example v=spf1 -all, or quoted strings, for example "v=spf1 -all"', excludes: [] },
  URI: { expects: 'priority, weight and target, for example 10 1 "https://www.example.com/"', excludes: [] },
}

const numberedPolicy: TypePolicy = {
  expects: '\\#, the number of octets, and that many octets in hexadecimal, for example \\# 4 C0000201',
  excludes: [],
}

export function policyOf(type: RecordType): TypePolicy {
  return isNamedType(type) ? typePolicies[type] : numberedPolicy
}
