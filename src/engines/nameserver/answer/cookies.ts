// DNS cookies (RFC 7873, format of RFC 9018): a client that returns our cookie didn't forge its address.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

export type Cookies = {
  /** The cookie to send back, and whether the received one is valid. */
  check(sent: Buffer, address: string): { cookie: Buffer; valid: boolean }
}

const clientOctets = 8
const wholeOctets = 24
const version = 1
const hashOctets = 8
// RFC 9018, section 4.3: cookies are replaced after half an hour and refused after one; clocks may differ by minutes.
const renewSeconds = 1800
const expireSeconds = 3600
const aheadSeconds = 300

export function createCookies(secret: Buffer = randomBytes(32), now: () => number = Date.now): Cookies {
  function hash(head: Buffer, address: string): Buffer {
    return createHmac('sha256', secret).update(head).update(address).digest().subarray(0, hashOctets)
  }

  function make(client: Buffer, address: string, seconds: number): Buffer {
    const cookie = Buffer.alloc(wholeOctets)
    client.copy(cookie, 0, 0, clientOctets)
    cookie[clientOctets] = version
    cookie.writeUInt32BE(seconds >>> 0, 12)
    hash(cookie.subarray(0, 16), address).copy(cookie, 16)
    return cookie
  }

  return {
    check(sent, address) {
      const seconds = Math.floor(now() / 1000)
      const fresh = () => make(sent, address, seconds)
      if (sent.length !== wholeOctets || sent[clientOctets] !== version) return { cookie: fresh(), valid: false }
      // Serial arithmetic, because the field is 32 bits wide.
      const age = (seconds - sent.readUInt32BE(12)) | 0
      if (age > expireSeconds || age < -aheadSeconds) return { cookie: fresh(), valid: false }
      if (!timingSafeEqual(hash(sent.subarray(0, 16), address), sent.subarray(16))) {
        return { cookie: fresh(), valid: false }
      }
      return { cookie: age > renewSeconds ? fresh() : sent, valid: true }
    },
  }
}
