// Response rate limiting: limits how many equal answers a victim of forged source addresses gets.
import { randomBytes } from 'node:crypto'
import { ipv6Octets } from '../../../dns/addresses.ts'

export type Verdict = 'send' | 'truncate' | 'drop'

export type RateLimit = { judge(address: string, tuple: number): Verdict }

export type RateLimitOptions = {
  /** Equal answers per second to one network: an IPv4 /24 or IPv6 /56. */
  perSecond?: number
  /** Every n-th limited answer is sent empty with TC, so that a real client can retry over TCP. */
  slip?: number
  isExempt?(address: string): boolean
  /** Limits with the same memory count together; without it, a limit counts on its own. */
  memory?: RateLimitMemory
  now?(): number
}

/** A table of fixed size: a flood from forged addresses can't make it grow. */
export type RateLimitMemory = { buffer: SharedArrayBuffer; seed: number }

// Resolvers cache answers, so a network that needs the same answer this often isn't a resolver.
const defaultPerSecond = 50
const defaultSlip = 2
const slots = 1 << 16
const slotOctets = 24

export function rateLimitMemory(): RateLimitMemory {
  return { buffer: new SharedArrayBuffer(slots * slotOctets), seed: randomBytes(4).readInt32BE(0) }
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1' || address.startsWith('::ffff:127.')
}

/** A hash of the network of an address. */
function networkHash(address: string, seed: number): number {
  let hash = seed
  const mix = (octet: number) => {
    hash = Math.imul(hash ^ octet, 0x01000193)
  }
  const end = address.lastIndexOf('.')
  if (end > 0) for (let at = address.lastIndexOf(':') + 1; at < end; at++) mix(address.charCodeAt(at))
  else {
    const octets = ipv6Octets(address.split('%', 1)[0]!)
    for (let at = 0; octets && at < 7; at++) mix(octets[at]!)
  }
  return hash
}

export function createRateLimit(options: RateLimitOptions = {}): RateLimit {
  const { perSecond = defaultPerSecond, slip = defaultSlip, isExempt = isLoopback, now = Date.now } = options
  // A network that takes over a slot starts with a full bucket, so a collision lets through too much rather than too little.
  // The seed makes collisions unpredictable. Threads write without locks: a race costs at most one answer too many.
  const { buffer, seed } = options.memory ?? rateLimitMemory()
  const tokens = new Float64Array(buffer, 0, slots)
  const lastMs = new Float64Array(buffer, slots * 8, slots)
  const keys = new Int32Array(buffer, slots * 16, slots)
  const limited = new Uint32Array(buffer, slots * 20, slots)

  return {
    judge(address, tuple) {
      if (isExempt(address)) return 'send'
      let key = Math.imul(networkHash(address, seed) ^ tuple, 0x85ebca6b)
      key ^= key >>> 13
      const slot = (key ^ (key >>> 16)) & (slots - 1)
      const atMs = now()
      if (keys[slot] !== key) {
        keys[slot] = key
        tokens[slot] = perSecond
        limited[slot] = 0
      } else {
        const earned = ((atMs - lastMs[slot]!) / 1000) * perSecond
        tokens[slot] = Math.min(perSecond, tokens[slot]! + Math.max(0, earned))
      }
      lastMs[slot] = atMs
      if (tokens[slot]! >= 1) {
        tokens[slot]! -= 1
        return 'send'
      }
      limited[slot]! += 1
      return slip > 0 && limited[slot]! % slip === 0 ? 'truncate' : 'drop'
    },
  }
}
