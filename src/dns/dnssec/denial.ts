// Records that prove nonexistence: NSEC (RFC 4034) and NSEC3 (RFC 5155, without salt and iterations as in RFC 9276).
import { hash } from 'node:crypto'

/** The types of a name, in blocks of 256. */
export function typeBitmap(types: Iterable<number>): Buffer {
  const blocks: Buffer[] = []
  let block: Buffer | null = null
  let window = -1
  let octets = 0
  const flush = () => {
    if (block) blocks.push(Buffer.from([window, octets]), block.subarray(0, octets))
  }
  for (const type of [...new Set(types)].sort((one, other) => one - other)) {
    if (type >> 8 !== window) {
      flush()
      window = type >> 8
      block = Buffer.alloc(32)
    }
    octets = ((type & 0xff) >> 3) + 1
    block![octets - 1] = block![octets - 1]! | (0x80 >> (type & 7))
  }
  flush()
  return Buffer.concat(blocks)
}

export function nsecRdata(next: string, types: Iterable<number>): Buffer {
  return Buffer.concat([Buffer.from(next, 'latin1'), typeBitmap(types)])
}

const nsec3Algorithm = 1
const hashOctets = 20
/** Algorithm, flags, no iterations, no salt. */
const parameters = Buffer.from([nsec3Algorithm, 0, 0, 0, 0])

/** The hash of a name, as a binary string. */
export function nsec3Hash(name: string): string {
  return hash('sha1', Buffer.from(name, 'latin1'), 'buffer').toString('latin1')
}

export function nsec3Rdata(next: string, types: Iterable<number>): Buffer {
  return Buffer.concat([parameters, Buffer.from([hashOctets]), Buffer.from(next, 'latin1'), typeBitmap(types)])
}

export const nsec3ParamRdata = (): Buffer => Buffer.from(parameters)

const digits = '0123456789abcdefghijklmnopqrstuv'

/** The owner of the NSEC3 record for a hash: in base32hex, below the zone. */
export function nsec3Owner(hashed: string, origin: string): string {
  let text = ''
  let bits = 0
  let left = 0
  for (let at = 0; at < hashed.length; at++) {
    bits = ((bits << 8) | hashed.charCodeAt(at)) & 0xfff
    for (left += 8; left >= 5; left -= 5) text += digits[(bits >> (left - 5)) & 31]
  }
  return `${String.fromCharCode(text.length)}${text}${origin}`
}

/** The hash in the owner of an NSEC3 record. */
export function hashInOwner(owner: string): string {
  let hashed = ''
  let bits = 0
  let left = 0
  for (let at = 1; at <= owner.charCodeAt(0); at++) {
    bits = ((bits << 5) | digits.indexOf(owner[at]!)) & 0xfff
    left += 5
    if (left < 8) continue
    left -= 8
    hashed += String.fromCharCode((bits >> left) & 0xff)
  }
  return hashed
}

/** The delete form of CDS and CDNSKEY (RFC 8078). */
export const cdsDelete = (): Buffer => Buffer.from([0, 0, 0, 0, 0])
export const cdnskeyDelete = (): Buffer => Buffer.from([0, 0, 3, 0, 0])
