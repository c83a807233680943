// The DNS protocol on the way in: what a query is, read from a packet that may hold anything.

export const typeNumbers = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  DS: 43,
  TLSA: 52,
  SVCB: 64,
  HTTPS: 65,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  CAA: 257,
} as const

export const rcodes = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  NOTAUTH: 9,
  BADVERS: 16,
} as const

export const opcodes = { QUERY: 0, NOTIFY: 4 } as const
export const classIn = 1
export const headerOctets = 12
const optionNsid = 3
const optionCookie = 10
const highestNameOctets = 255

/** What one packet asks. One object is filled again and again, so whoever keeps it past the packet copies it. */
export type Query = {
  id: number
  opcode: number
  recursionDesired: boolean
  /** What is wrong with it already; NOERROR if nothing is. */
  rcode: number
  /** End of the name and of the question; 0 where the question could not be read and is not echoed. */
  nameEnd: number
  questionEnd: number
  type: number
  class: number
  /** Of name and type, whatever the case of the letters. */
  hash: number
  edns: boolean
  udpSize: number
  dnssecOk: boolean
  nsid: boolean
  /** Where the cookie option's data stands; 0 without one. */
  cookieAt: number
  cookieOctets: number
  /** The last record is a transaction signature. */
  tsig: boolean
}

export function emptyQuery(): Query {
  return {
    id: 0,
    opcode: 0,
    recursionDesired: false,
    rcode: 0,
    nameEnd: 0,
    questionEnd: 0,
    type: 0,
    class: 0,
    hash: 0,
    edns: false,
    udpSize: 0,
    dnssecOk: false,
    nsid: false,
    cookieAt: 0,
    cookieOctets: 0,
    tsig: false,
  }
}

// Lengths of labels are below 64 and letters above, so a whole name can be folded octet by octet.
export const lowerCase: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet >= 0x41 && octet <= 0x5a ? octet + 0x20 : octet,
)

/** A name as text to the form used as key everywhere here: its octets on the wire, in lower case, as a string. */
export function wireName(text: string): string {
  if (text === '.' || text === '') return '\0'
  let wire = ''
  const folded = text.toLowerCase()
  for (let start = 0; start < folded.length; ) {
    const dot = folded.indexOf('.', start)
    const end = dot < 0 ? folded.length : dot
    wire += String.fromCharCode(end - start) + folded.slice(start, end)
    start = end + 1
  }
  return `${wire}\0`
}

export function textName(wire: string): string {
  const labels: string[] = []
  for (let at = 0; at < wire.length - 1; at += 1 + wire.charCodeAt(at)) {
    labels.push(wire.slice(at + 1, at + 1 + wire.charCodeAt(at)))
  }
  return labels.length === 0 ? '.' : labels.join('.')
}

export function nameInQuery(message: Buffer, query: Query): string {
  const name = message.toString('latin1', headerOctets, query.nameEnd)
  for (let at = headerOctets; at < query.nameEnd; at++) {
    if (lowerCase[message[at]!] !== message[at]) return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  }
  return name
}

/** Where the name at `at` ends; -1 if it does not. A pointer ends a name wherever it leads, so none is followed. */
export function skipName(message: Buffer, at: number): number {
  for (let next = at; next < message.length; ) {
    const length = message[next]!
    if (length === 0) return next + 1
    if (length >= 0xc0) return next + 2 <= message.length ? next + 2 : -1
    if (length > 63) return -1
    next += 1 + length
  }
  return -1
}

/** Reads the name of the question, and its hash on the way. There is nothing before it that a pointer could mean. */
function readQuestion(message: Buffer, query: Query): boolean {
  let at = headerOctets
  let hash = 0x811c9dc5
  for (;;) {
    const length = message[at]
    if (length === undefined || length > 63) return false
    const end = at + 1 + length
    if (end - headerOctets > highestNameOctets || end > message.length) return false
    for (; at < end; at++) hash = Math.imul(hash ^ lowerCase[message[at]!]!, 0x01000193)
    if (length === 0) break
  }
  if (at + 4 > message.length) return false
  query.type = (message[at]! << 8) | message[at + 1]!
  query.class = (message[at + 2]! << 8) | message[at + 3]!
  query.hash = Math.imul(hash ^ query.type, 0x01000193)
  query.nameEnd = at
  query.questionEnd = at + 4
  return true
}

function readOptions(message: Buffer, start: number, end: number, query: Query): boolean {
  let at = start
  while (at < end) {
    if (at + 4 > end) return false
    const code = message.readUInt16BE(at)
    const length = message.readUInt16BE(at + 2)
    at += 4
    if (at + length > end) return false
    if (code === optionNsid) query.nsid = true
    else if (code === optionCookie && query.cookieAt === 0) {
      // A client cookie alone, or with a server's after it (RFC 7873, section 5.2.2).
      if (length !== 8 && (length < 16 || length > 40)) return false
      query.cookieAt = at
      query.cookieOctets = length
    }
    at += length
  }
  return true
}

/** The records after the question: OPT and TSIG are noted, everything else is passed over. */
function readRecords(message: Buffer, query: Query): boolean {
  // Counts are the sender's claims; every record takes eleven octets at least, so a false one ends at the packet's end.
  const additionalFrom = message.readUInt16BE(8)
  const total = additionalFrom + message.readUInt16BE(10)
  let at = query.questionEnd
  for (let index = 0; index < total; index++) {
    const fixed = skipName(message, at)
    if (fixed < 0 || fixed + 10 > message.length) return false
    const type = message.readUInt16BE(fixed)
    const end = fixed + 10 + message.readUInt16BE(fixed + 8)
    if (end > message.length) return false
    if (type === typeNumbers.OPT) {
      if (query.edns || index < additionalFrom || fixed !== at + 1) return false
      if (!readOptions(message, fixed + 10, end, query)) return false
      query.edns = true
      query.udpSize = message.readUInt16BE(fixed + 2)
      query.dnssecOk = (message[fixed + 6]! & 0x80) !== 0
      if (message[fixed + 5] !== 0) query.rcode = rcodes.BADVERS
    } else if (type === typeNumbers.TSIG && index >= additionalFrom) {
      if (index !== total - 1) return false
      query.tsig = true
    }
    at = end
  }
  return at === message.length
}

/**
 * Fills `query`. False for a packet that must not be answered at all: too short, or an answer itself, for two servers
 * that answer each other's answers never stop. Whatever else is wrong is in `query.rcode`.
 */
export function decodeQuery(message: Buffer, query: Query): boolean {
  if (message.length < headerOctets || (message[2]! & 0x80) !== 0) return false
  query.id = (message[0]! << 8) | message[1]!
  query.opcode = (message[2]! >> 3) & 0x0f
  query.recursionDesired = (message[2]! & 0x01) !== 0
  query.rcode = rcodes.NOERROR
  query.nameEnd = 0
  query.questionEnd = 0
  query.type = 0
  query.class = 0
  query.hash = 0
  query.edns = false
  query.udpSize = 0
  query.dnssecOk = false
  query.nsid = false
  query.cookieAt = 0
  query.cookieOctets = 0
  query.tsig = false
  if (query.opcode !== opcodes.QUERY) {
    query.rcode = rcodes.NOTIMP
    return true
  }
  const oneQuestion = message[4] === 0 && message[5] === 1 && message[6] === 0 && message[7] === 0
  if (!oneQuestion || !readQuestion(message, query) || !readRecords(message, query)) {
    query.rcode = rcodes.FORMERR
    // What could not be read whole is not trusted in part.
    query.edns = false
    query.cookieAt = 0
    query.nsid = false
    query.tsig = false
  }
  return true
}
