// What can be done about a packet without the zones: cookies, the rate limit, errors, and answers that were given before.
import type { AnswerCache } from './cache.ts'
import type { Cookies } from './cookies.ts'
import { bareAnswer, finishAnswer, type Options, optOctets } from './encode.ts'
import type { Tallies } from './metrics.ts'
import type { RateLimit } from './rate-limit.ts'
import { classIn, opcodes, type Query, rcodes, typeNumbers } from './wire.ts'

export type Peer = { address: string; port: number }

export type Context = {
  message: Buffer
  query: Query
  peer: Peer
  tcp: boolean
  opt: Options | null
  /** An address that took part in a handshake, or shows a cookie of ours, is nobody's victim. */
  trusted: boolean
}

export type FrontOptions = {
  cache: AnswerCache<{ live: boolean }>
  cookies: Cookies
  rateLimit: RateLimit | null
  tallies: Tallies
  /** Host name of this nameserver, told to whoever asks for it (RFC 5001). */
  nsid: string
}

export type Front = {
  contextOf(message: Buffer, query: Query, peer: Peer, tcp: boolean): Context
  /** How long the answer may be. */
  limitOf(context: Context): number
  /** Null if the answer stays unsent. `make` is only called for one that is sent. */
  limited(context: Context, rcode: number, tuple: number, make: () => Buffer): Buffer | null
  fault(context: Context, rcode: number): Buffer | null
  /** Undefined where it takes the zones to answer. */
  answer(context: Context): Buffer | null | undefined
}

// What passes every path without being split (the DNS flag day of 2020).
const highestUdp = 1232
const plainUdp = 512
const highestTcp = 65_535

/** Signed messages, notices and transfers: not for everyone, and not always one message. */
export function isSpecial({ opcode, tsig, type }: Query, tcp: boolean): boolean {
  return opcode === opcodes.NOTIFY || tsig || (tcp && (type === typeNumbers.AXFR || type === typeNumbers.IXFR))
}

export function createFront({ cache, cookies, rateLimit, tallies, nsid: name }: FrontOptions): Front {
  const nsid = Buffer.from(name, 'latin1')

  function limitOf({ query, tcp }: Context): number {
    if (tcp) return highestTcp
    return query.edns ? Math.min(highestUdp, Math.max(plainUdp, query.udpSize)) : plainUdp
  }

  function limited(context: Context, rcode: number, tuple: number, make: () => Buffer): Buffer | null {
    const { message, query, peer, opt, trusted } = context
    const verdict = rateLimit && !trusted ? rateLimit.judge(peer.address, tuple) : 'send'
    if (verdict === 'drop') {
      tallies.drop('rate')
      return null
    }
    tallies.count(query.type, rcode)
    return verdict === 'send' ? make() : bareAnswer(message, query, rcodes.NOERROR, opt, true)
  }

  function fault(context: Context, rcode: number): Buffer | null {
    // Errors of all names are one answer to the rate limit: they say the same.
    return limited(context, rcode, rcode, () => bareAnswer(context.message, context.query, rcode, context.opt))
  }

  return {
    limitOf,
    limited,
    fault,
    contextOf(message, query, peer, tcp) {
      let trusted = tcp
      let opt: Options | null = null
      if (query.edns) {
        let cookie: Buffer | null = null
        if (query.cookieAt > 0) {
          const sent = message.subarray(query.cookieAt, query.cookieAt + query.cookieOctets)
          const checked = cookies.check(sent, peer.address)
          cookie = checked.cookie
          trusted ||= checked.valid
        }
        opt = { nsid: query.nsid ? nsid : null, cookie, udpSize: highestUdp }
      }
      return { message, query, peer, tcp, opt, trusted }
    },
    answer(context) {
      const { message, query, opt } = context
      if (query.rcode !== rcodes.NOERROR) return fault(context, query.rcode)
      if (query.class !== classIn) return fault(context, rcodes.REFUSED)
      // Transfers are TCP's, and only of whoever is set up for them.
      if (query.type === typeNumbers.AXFR || query.type === typeNumbers.IXFR) return fault(context, rcodes.REFUSED)
      const cached = cache.get(message, query)
      if (!cached || cached.end - cached.start + (opt ? optOctets(opt) : 0) > limitOf(context)) return undefined
      return limited(context, cached.rcode, cached.tuple, () => finishAnswer(cached, message, query, opt))
    },
  }
}
