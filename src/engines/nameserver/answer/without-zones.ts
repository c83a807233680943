// The part of answering a packet that needs no zones: cookies, the rate limit, errors, and cached answers.

import { classIn, extendedErrors, opcodes, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import type { Query } from '../../../dns/packet/query.ts'
import type { NameFilter } from '../zones/name-filter.ts'
import type { AnswerCache, AnswerSource, CachedAnswer } from './cache.ts'
import type { Cookies } from './cookies.ts'
import { answerOctets, bareAnswer, finishAnswer, type Options, optOctets, withError } from './encode.ts'
import type { Tallies } from './metrics.ts'
import type { RateLimit } from './rate-limit.ts'

export type Peer = { address: string; port: number }

export type Context = {
  message: Buffer
  query: Query
  peer: Peer
  tcp: boolean
  opt: Options | null
  /** Whether the address is real: the client completed a TCP handshake or sent a valid cookie. */
  trusted: boolean
}

export type WithoutZonesOptions = {
  cache: AnswerCache<AnswerSource>
  filter: NameFilter
  cookies: Cookies
  rateLimit: RateLimit | null
  tallies: Tallies
  /** Host name of this nameserver, sent to clients that request it (NSID, RFC 5001). */
  nsid: string
}

export type AnswersWithoutZones = {
  contextOf(message: Buffer, query: Query, peer: Peer, tcp: boolean): Context
  /** The maximum length of the answer. */
  limitOf(context: Context): number
  /** Null if the answer is dropped. `make` is only called if it is sent. */
  limited(context: Context, rcode: number, tuple: number, make: () => Buffer): Buffer | null
  /** `why` is an extended error. */
  fault(context: Context, rcode: number, why?: number): Buffer | null
  /** Undefined if the answer needs the zones. */
  answer(context: Context): Buffer | null | undefined
}

// Avoids fragmentation on every path (DNS flag day 2020).
const maxUdp = 1232
const plainUdp = 512
const maxTcp = 65_535

/** Messages that need a key, or are answered later or by several messages: signed ones, NOTIFY, transfers and updates. */
export function isSpecial({ opcode, tsig, type }: Query, tcp: boolean): boolean {
  if (opcode === opcodes.NOTIFY || opcode === opcodes.UPDATE) return true
  return tsig || (tcp && (type === typeNumbers.AXFR || type === typeNumbers.IXFR))
}

export function createAnswersWithoutZones({
  cache,
  filter,
  cookies,
  rateLimit,
  tallies,
  nsid: name,
}: WithoutZonesOptions): AnswersWithoutZones {
  const nsid = Buffer.from(name, 'latin1')

  function limitOf({ query, tcp }: Context): number {
    if (tcp) return maxTcp
    return query.edns ? Math.min(maxUdp, Math.max(plainUdp, query.udpSize)) : plainUdp
  }

  function limited(context: Context, rcode: number, tuple: number, make: () => Buffer): Buffer | null {
    const { message, query, peer, opt, trusted } = context
    const judge = (tuple: number) => (rateLimit && !trusted ? rateLimit.judge(peer.address, tuple) : 'send')
    const verdict = judge(tuple)
    if (verdict === 'send') {
      tallies.count(query.type, rcode)
      return make()
    }
    // RFC 7873, section 5.2.3: a client with cookies retries at once with the cookie it gets here, which exempts it. These
    // answers are limited too, because a client cookie can be forged like an address.
    const offersCookie = opt !== null && opt.cookie !== null
    if ((offersCookie ? judge(rcodes.BADCOOKIE) : verdict) === 'drop') {
      tallies.drop('rate')
      return null
    }
    const bare = offersCookie ? { rcode: rcodes.BADCOOKIE } : { rcode: rcodes.NOERROR, truncated: true }
    tallies.count(query.type, offersCookie ? bare.rcode : rcode)
    // Without the NSID, an answer to a forged address is hardly longer than its query.
    return bareAnswer(message, query, bare, opt && { ...opt, nsid: offersCookie ? null : opt.nsid })
  }

  function fault(context: Context, rcode: number, why?: number): Buffer | null {
    const { message, query, opt } = context
    const options = () => (why === undefined ? opt : withError(query, opt, why, limitOf(context)))
    // For the rate limit, the same error for different names is the same answer.
    return limited(context, rcode, rcode, () => bareAnswer(message, query, { rcode }, options()))
  }

  /** Undefined if the answer is too long. */
  function answerCached(context: Context, cached: CachedAnswer<AnswerSource>): Buffer | null | undefined {
    const { message, query, opt } = context
    if (answerOctets(cached, query) + (opt ? optOctets(opt) : 0) > limitOf(context)) return undefined
    const made = limited(context, cached.rcode, cached.tuple, () => finishAnswer(cached, message, query, opt))
    if (made !== null) cache.hit(cached)
    return made
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
        opt = { nsid: query.nsid ? nsid : null, cookie, udpSize: maxUdp }
      }
      return { message, query, peer, tcp, opt, trusted }
    },
    answer(context) {
      const { message, query } = context
      if (query.rcode !== rcodes.NOERROR) return fault(context, query.rcode)
      if (query.class !== classIn) return fault(context, rcodes.REFUSED, extendedErrors.notSupported)
      // Transfers need TCP and a configured secondary.
      if (query.type === typeNumbers.AXFR || query.type === typeNumbers.IXFR) {
        return fault(context, rcodes.REFUSED, extendedErrors.prohibited)
      }
      const cached = cache.get(message, query)
      if (cached) return answerCached(context, cached)
      const closest = filter.closest(message)
      if (closest === 'unknown') return undefined
      if (closest === 'nowhere') {
        return filter.stands ? fault(context, rcodes.REFUSED, extendedErrors.notAuthoritative) : undefined
      }
      const below = cache.getBelow(message, query, filter)
      return below && filter.stands ? answerCached(context, below) : undefined
    },
  }
}
