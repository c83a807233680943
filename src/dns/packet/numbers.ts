// The numbers of the DNS protocol.
export const typeNumbers = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  CERT: 37,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  SVCB: 64,
  HTTPS: 65,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const

export const rcodes = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  BADVERS: 16,
  BADCOOKIE: 23,
} as const

/** The extended DNS errors (RFC 8914) that the nameserver sends. */
export const extendedErrors = { notReady: 14, prohibited: 18, notAuthoritative: 20, notSupported: 21 } as const

export const opcodes = { QUERY: 0, NOTIFY: 4, UPDATE: 5 } as const
export const classIn = 1
export const classNone = 254
export const classAny = 255
export const headerOctets = 12
export const maxNameOctets = 255
export const maxLabelOctets = 63
/** The maximum per name, which is how many labels a name can have. A long chain takes time, and a short one suffices. */
export const maxPointers = 127
/** Flags in the second 16 bits of a header. */
export const flags = {
  response: 0x8000,
  opcode: 0x7800,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
  rcode: 0x000f,
} as const
