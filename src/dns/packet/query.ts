// Decodes a query for a DNS server from an untrusted packet.

import { headerOctets, maxLabelOctets, maxNameOctets, opcodes, rcodes, typeNumbers } from './numbers.ts'
import { lowerCase, skipName } from './wire-names.ts'

const optionNsid = 3
const optionCookie = 10

/** A decoded query. The object is reused for the next packet, so copy it to keep it. */
export type Query = {
  id: number
  opcode: number
  recursionDesired: boolean
  /** The error found while decoding; NOERROR if there is none. */
  rcode: number
  /** The ends of the name and of the question; 0 if the question couldn't be read, so it isn't echoed. */
  nameEnd: number
  questionEnd: number
  type: number
  class: number
  /** Hash of name and type, ignoring case. */
  hash: number
  edns: boolean
  udpSize: number
  dnssecOk: boolean
  nsid: boolean
  /** Offset of the cookie option's data; 0 without one. */
  cookieAt: number
  cookieOctets: number
  /** Whether the last record is a TSIG. */
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

export function nameInQuery(message: Buffer, query: Query): string {
  const name = message.toString('latin1', headerOctets, query.nameEnd)
  for (let at = headerOctets; at < query.nameEnd; at++) {
    if (lowerCase[message[at]!] !== message[at]) return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  }
  return name
}

/** Reads the name of the question and computes its hash. Pointers are invalid here, because no name precedes it. */
function readQuestion(message: Buffer, query: Query): boolean {
  let at = headerOctets
  let hash = 0x811c9dc5
  for (;;) {
    const length = message[at]
    if (length === undefined || length > maxLabelOctets) return false
    const end = at + 1 + length
    if (end - headerOctets > maxNameOctets || end > message.length) return false
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
      // A client cookie, alone or followed by a server cookie (RFC 7873, section 5.2.2).
      if (length !== 8 && (length < 16 || length > 40)) return false
      query.cookieAt = at
      query.cookieOctets = length
    }
    at += length
  }
  return true
}

/** Reads the records after the question. Only OPT and TSIG matter; others are skipped. */
function readRecords(message: Buffer, query: Query): boolean {
  // Counts are untrusted, but each record has at least 11 octets, so a wrong count stops at the end of the packet.
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
 * Fills `query`. Returns false for a packet that must not be answered: one that is too short, or is itself an answer,
 * because two servers that answer each other's answers would never stop. Other errors are in `query.rcode`.
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
    // A partly readable packet isn't trusted.
    query.edns = false
    query.cookieAt = 0
    query.nsid = false
    query.tsig = false
  }
  return true
}
