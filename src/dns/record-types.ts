// The record types a zone may hold, and the rules of each type as data.

export const recordTypes = [
  'A',
  'AAAA',
  'ALIAS',
  'CAA',
  'CNAME',
  'DS',
  'HTTPS',
  'MX',
  'NS',
  'SRV',
  'SVCB',
  'TLSA',
  'TXT',
] as const

export type RecordType = (typeof recordTypes)[number]

const recordTypeSet: ReadonlySet<string> = new Set(recordTypes)

export function isRecordType(text: string): text is RecordType {
  return recordTypeSet.has(text)
}

export const ttlLimits = { lowest: 30, highest: 86_400, default: 300 } as const

// A DKIM key of 4,096 bits needs about 800 octets; beyond a few KiB answers stop fitting where resolvers expect them.
export const highestRdataOctets = 4096

export type PolicyRefusal = {
  code: 'cname_at_apex' | 'ds_at_apex' | 'ns_at_apex' | 'ns_at_wildcard'
  detail: string
}

export type TypePolicy = {
  // Completes "the value of a … record is …" in refusals.
  expects: string
  apex?: PolicyRefusal
  wildcard?: PolicyRefusal
  // No second record of this type at the name.
  single?: true
  // Types that may not stand beside this one at the same name.
  excludes: readonly RecordType[] | 'every other type'
}

export const typePolicies: Readonly<Record<RecordType, TypePolicy>> = {
  A: { expects: 'one IPv4 address, for example 192.0.2.1', excludes: [] },
  AAAA: { expects: 'one IPv6 address, for example 2001:db8::1', excludes: [] },
  ALIAS: {
    expects: 'one full host name, for example www.example.net',
    single: true,
    // An ALIAS is answered with the addresses of its target, which would mix with addresses given by hand.
    excludes: ['A', 'AAAA'],
  },
  CAA: { expects: 'flags, tag and value, for example 0 issue "letsencrypt.org"', excludes: [] },
  CNAME: {
    expects: 'one full host name, for example www.example.net',
    apex: {
      code: 'cname_at_apex',
      detail:
        'A CNAME record cannot stand at the apex of a domain, beside its SOA and NS records; use an ALIAS record, ' +
        'which answers with the addresses of its target.',
    },
    single: true,
    excludes: 'every other type',
  },
  DS: {
    expects: 'key tag, algorithm, digest type and hexadecimal digest, for example 12345 13 2 followed by 64 digits',
    apex: {
      code: 'ds_at_apex',
      detail: 'A DS record for the domain itself belongs in its parent zone; add it at the registrar.',
    },
    excludes: [],
  },
  HTTPS: { expects: 'priority, target and parameters, for example 1 . alpn="h2,h3"', excludes: [] },
  MX: { expects: 'preference and mail host, for example 10 mail.example.com', excludes: [] },
  NS: {
    expects: 'one full host name, for example ns1.example.net',
    apex: { code: 'ns_at_apex', detail: 'SOA and NS records at the apex of the domain belong to the service.' },
    wildcard: {
      code: 'ns_at_wildcard',
      detail: 'An NS record cannot stand at a wildcard name: resolvers do not agree on what it means.',
    },
    excludes: [],
  },
  SRV: { expects: 'priority, weight, port and target, for example 0 5 5060 sip.example.com', excludes: [] },
  SVCB: { expects: 'priority, target and parameters, for example 1 dns.example.com alpn="dot"', excludes: [] },
  TLSA: {
    expects: 'usage, selector, matching type and hexadecimal data, for example 3 1 1 followed by 64 digits',
    excludes: [],
  },
  TXT: { expects: 'text, for example v=spf1 -all, or quoted strings, for example "v=spf1 -all"', excludes: [] },
}

// ALIAS has no number: it never goes over the wire.
const typeNumbers = new Map<number, RecordType>([
  [1, 'A'],
  [2, 'NS'],
  [5, 'CNAME'],
  [15, 'MX'],
  [16, 'TXT'],
  [28, 'AAAA'],
  [33, 'SRV'],
  [43, 'DS'],
  [52, 'TLSA'],
  [64, 'SVCB'],
  [65, 'HTTPS'],
  [257, 'CAA'],
])

// Known so that a zone file from elsewhere has these lines skipped, while a misspelt type stays an error.
const foreignTypes: ReadonlySet<string> = new Set(
  (
    'MD MF MB MG MR NULL WKS PTR HINFO MINFO RP AFSDB X25 ISDN RT NSAP NSAP-PTR SIG KEY PX GPOS LOC NXT EID NIMLOC ' +
    'ATMA NAPTR KX CERT A6 DNAME SINK APL SSHFP IPSECKEY RRSIG NSEC DNSKEY DHCID NSEC3 NSEC3PARAM SMIMEA HIP NINFO ' +
    'RKEY TALINK CDS CDNSKEY OPENPGPKEY CSYNC ZONEMD DSYNC SPF NID L32 L64 LP EUI48 EUI64 URI AVC DOA AMTRELAY ' +
    'RESINFO WALLET TA DLV ANAME LUA'
  ).split(' '),
)

export type FileType = RecordType | 'SOA' | 'foreign' | 'unknown'

export function typeInZoneFile(text: string): FileType {
  const type = text.slice(0, 32).toUpperCase()
  const numbered = /^TYPE(\d{1,5})$/.exec(type)
  if (numbered) {
    const number = Number(numbered[1])
    return number === 6 ? 'SOA' : (typeNumbers.get(number) ?? (number > 65_535 ? 'unknown' : 'foreign'))
  }
  if (type === 'SOA' || isRecordType(type)) return type
  return foreignTypes.has(type) ? 'foreign' : 'unknown'
}
