// TSIG signatures (RFC 8945, hmac-sha256): parses them from untrusted messages, verifies and creates them.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { headerOctets, maxPointers, typeNumbers } from './numbers.ts'
import { skipName, wireName } from './wire-names.ts'

/** The name is text, without a trailing dot. */
export type TsigKey = { name: string; secret: Buffer }

export type Tsig = {
  /** The offset of the record; the octets before it are signed. */
  start: number
  /** Names are in the form of wireName. */
  keyName: string
  algorithm: string
  timeSigned: number
  fudge: number
  mac: Buffer
  originalId: number
  error: number
  other: Buffer
}

export const tsigErrors = { NONE: 0, BADSIG: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22 } as const

/** The value we send and the maximum we accept: a message can be replayed for this long. */
export const fudgeSeconds = 300

const algorithm = wireName('hmac-sha256')
const macOctets = 32
const classAny = 255
const maxNameOctets = 255
const nothing = Buffer.alloc(0)

/** A name in lower case, or null. Pointers may only point backwards, which rules out loops. */
function readName(message: Buffer, start: number): string | null {
  let name = ''
  for (let at = start, highest = start, pointers = 0; ; ) {
    const length = message[at]
    if (length === undefined) return null
    if (length >= 0xc0) {
      const low = message[at + 1]
      if (low === undefined) return null
      at = ((length & 0x3f) << 8) | low
      if (at >= highest || ++pointers > maxPointers) return null
      highest = at
      continue
    }
    if (length > 63 || at + 1 + length > message.length) return null
    if (name.length + 1 + length > maxNameOctets) return null
    name += message.toString('latin1', at, at + 1 + length)
    if (length === 0) return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
    at += 1 + length
  }
}

/** The offset of the last record; 0 if there is none, -1 if the message is malformed. */
function lastRecord(message: Buffer): number {
  let at = headerOctets
  for (let left = message.readUInt16BE(4); left > 0; left--) {
    at = skipName(message, at)
    if (at < 0 || at + 4 > message.length) return -1
    at += 4
  }
  let last = 0
  for (let left = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10); left > 0; left--) {
    last = at
    const fixed = skipName(message, at)
    if (fixed < 0 || fixed + 10 > message.length) return -1
    at = fixed + 10 + message.readUInt16BE(fixed + 8)
    if (at > message.length) return -1
  }
  return at === message.length ? last : -1
}

/** Null for a message without a signature. Never throws. */
export function readTsig(message: Buffer): Tsig | 'malformed' | null {
  if (message.length < headerOctets) return 'malformed'
  const start = lastRecord(message)
  if (start < 0) return 'malformed'
  if (start === 0 || message.readUInt16BE(10) === 0) return null
  const fixed = skipName(message, start)
  if (message.readUInt16BE(fixed) !== typeNumbers.TSIG) return null
  const keyName = readName(message, start)
  const data = fixed + 10
  const algorithm = readName(message, data)
  const times = skipName(message, data)
  if (keyName === null || algorithm === null || times < 0 || times + 10 > message.length) return 'malformed'
  if (message.readUInt16BE(fixed + 2) !== classAny || message.readUInt32BE(fixed + 4) !== 0) return 'malformed'
  const macEnd = times + 10 + message.readUInt16BE(times + 8)
  if (macEnd + 6 > message.length || macEnd + 6 + message.readUInt16BE(macEnd + 4) !== message.length) {
    return 'malformed'
  }
  return {
    start,
    keyName,
    algorithm,
    timeSigned: message.readUIntBE(times, 6),
    fudge: message.readUInt16BE(times + 6),
    mac: Buffer.from(message.subarray(times + 10, macEnd)),
    originalId: message.readUInt16BE(macEnd),
    error: message.readUInt16BE(macEnd + 2),
    other: Buffer.from(message.subarray(macEnd + 6)),
  }
}

type Stamp = Pick<Tsig, 'timeSigned' | 'fudge' | 'error' | 'other'>

function timers({ timeSigned, fudge }: Pick<Stamp, 'timeSigned' | 'fudge'>): Buffer {
  const octets = Buffer.alloc(8)
  octets.writeUIntBE(timeSigned, 0, 6)
  octets.writeUInt16BE(fudge, 6)
  return octets
}

function u16(...numbers: number[]): Buffer {
  return Buffer.from(numbers.flatMap((number) => [number >> 8, number & 0xff]))
}

/** `prior` is the MAC of the request or of the previous message; later messages only sign their time fields. */
function macOf(
  key: TsigKey,
  message: Buffer,
  stamp: Stamp,
  { prior, follower = false }: { prior: Buffer | null; follower?: boolean },
): Buffer {
  const hmac = createHmac('sha256', key.secret)
  if (prior) hmac.update(u16(prior.length)).update(prior)
  hmac.update(message)
  if (follower) return hmac.update(timers(stamp)).digest()
  return hmac
    .update(Buffer.from(wireName(key.name), 'latin1'))
    .update(u16(classAny, 0, 0))
    .update(Buffer.from(algorithm, 'latin1'))
    .update(timers(stamp))
    .update(u16(stamp.error, stamp.other.length))
    .update(stamp.other)
    .digest()
}

function unsigned(message: Buffer, { start, originalId }: Tsig): Buffer {
  const octets = Buffer.from(message.subarray(0, start))
  octets.writeUInt16BE(originalId, 0)
  octets.writeUInt16BE(octets.readUInt16BE(10) - 1, 10)
  return octets
}

/** When verifying an answer, `prior` is the MAC of the request. */
export type Check = { key: TsigKey; nowSeconds: number; prior?: Buffer | null }

export type Verdict = (typeof tsigErrors)[keyof typeof tsigErrors] | 'malformed'

/** In the order of RFC 8945, section 5.2: the key, the signature, the time. */
export function verify(message: Buffer, tsig: Tsig, { key, nowSeconds, prior = null }: Check): Verdict {
  if (tsig.keyName !== wireName(key.name) || tsig.algorithm !== algorithm) return tsigErrors.BADKEY
  if (tsig.mac.length > macOctets) return 'malformed'
  // An unsigned error has no MAC. A truncated MAC is never accepted, but it is only malformed below half the length.
  if (tsig.mac.length !== 0 && tsig.mac.length < macOctets / 2) return 'malformed'
  const expected = macOf(key, unsigned(message, tsig), tsig, { prior })
  if (tsig.mac.length === 0 || !timingSafeEqual(expected.subarray(0, tsig.mac.length), tsig.mac)) {
    return tsigErrors.BADSIG
  }
  if (tsig.mac.length < macOctets) return tsigErrors.BADTRUNC
  const allowed = Math.min(tsig.fudge, fudgeSeconds)
  return Math.abs(nowSeconds - tsig.timeSigned) > allowed ? tsigErrors.BADTIME : tsigErrors.NONE
}

type Signature = Stamp & { keyName: string; algorithm: string; mac: Buffer }

function append(message: Buffer, signature: Signature): Buffer {
  const { keyName, algorithm, mac, ...stamp } = signature
  const name = Buffer.from(keyName, 'latin1')
  const data = Buffer.concat([
    Buffer.from(algorithm, 'latin1'),
    timers(stamp),
    u16(mac.length),
    mac,
    message.subarray(0, 2),
    u16(stamp.error, stamp.other.length),
    stamp.other,
  ])
  const signed = Buffer.concat([message, name, u16(typeNumbers.TSIG, classAny, 0, 0, data.length), data])
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10)
  return signed
}

export type Signer = (message: Buffer) => Buffer

/** Signs the messages of an answer to the request with this MAC, or a request if it is null. */
export function createSigner(key: TsigKey, requestMac: Buffer | null, now: () => number): Signer {
  let prior = requestMac
  let follower = false
  return (message) => {
    const stamp = { timeSigned: now(), fudge: fudgeSeconds, error: tsigErrors.NONE, other: nothing }
    const mac = macOf(key, message, stamp, { prior, follower })
    prior = mac
    follower = true
    return append(message, { keyName: wireName(key.name), algorithm, mac, ...stamp })
  }
}

/** Verifies the messages of an answer one by one. `done` returns whether the last one was signed, as it must be. */
export type Verifier = { verify(message: Buffer): boolean; done(): boolean }

// RFC 8945, section 5.3.1.
const maxUnsigned = 99

/** Verifies the messages of an answer to the request with this MAC. */
export function createVerifier(key: TsigKey, requestMac: Buffer, now: () => number): Verifier {
  let prior = requestMac
  let first = true
  let unsignedMessages: Buffer[] = []
  return {
    verify(message) {
      const tsig = readTsig(message)
      if (tsig === 'malformed') return false
      if (tsig === null) {
        unsignedMessages.push(message)
        return !first && unsignedMessages.length <= maxUnsigned
      }
      if (tsig.keyName !== wireName(key.name) || tsig.algorithm !== algorithm || tsig.error !== 0) return false
      const octets = Buffer.concat([...unsignedMessages, unsigned(message, tsig)])
      const expected = macOf(key, octets, tsig, { prior, follower: !first })
      if (tsig.mac.length !== macOctets || !timingSafeEqual(expected, tsig.mac)) return false
      if (Math.abs(now() - tsig.timeSigned) > Math.min(tsig.fudge, fudgeSeconds)) return false
      prior = tsig.mac
      first = false
      unsignedMessages = []
      return true
    },
    done: () => !first && unsignedMessages.length === 0,
  }
}

/** Signs a request, and returns a verifier for its answer. Without a key, the request stays unsigned. */
export function signRequest(query: Buffer, key: TsigKey | null, now = () => Math.floor(Date.now() / 1000)) {
  if (!key) return { query, verifier: null }
  const signed = createSigner(key, null, now)(query)
  const tsig = readTsig(signed) as Tsig
  return { query: signed, verifier: createVerifier(key, tsig.mac, now) }
}

/** The answer to a request with an invalid signature; its rcode is NOTAUTH already. */
export function signError(answer: Buffer, tsig: Tsig, error: number, { key, nowSeconds }: Check): Buffer {
  // Only BADTIME is signed, because the client has the key; it repeats the time of the request (section 5.2.3).
  const late = error === tsigErrors.BADTIME
  const other = Buffer.alloc(late ? 6 : 0)
  if (late) other.writeUIntBE(nowSeconds, 0, 6)
  const stamp = { timeSigned: late ? tsig.timeSigned : nowSeconds, fudge: fudgeSeconds, error, other }
  const mac = late ? macOf(key, answer, stamp, { prior: tsig.mac }) : nothing
  return append(answer, { keyName: tsig.keyName, algorithm: tsig.algorithm, mac, ...stamp })
}
