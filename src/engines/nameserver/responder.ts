// From one packet to its answer, whichever way it came: the cache first, then the zone, then what must be waited for.
import type { Logger } from 'pino'
import type { Aliases } from './alias.ts'
import type { AnswerCache } from './cache.ts'
import type { Cookies } from './cookies.ts'
import { bareAnswer, createEncoder, finishAnswer, type Options, optOctets } from './encode.ts'
import { type Found, lookup, type Surroundings } from './lookup.ts'
import type { NameserverMetrics } from './metrics.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Transfers } from './transfers.ts'
import { classIn, decodeQuery, emptyQuery, nameInQuery, opcodes, type Query, rcodes, typeNumbers } from './wire.ts'
import type { ZoneSource, ZoneTable } from './zone-table.ts'

export type Peer = { address: string; port: number }

/** A socket of UDP or one connection of TCP. */
export type Channel = { tcp: boolean; send(answer: Buffer, peer: Peer): void | Promise<void> }

export type ResponderOptions = {
  table: ZoneTable
  cache: AnswerCache
  aliases: Aliases
  surroundings: Surroundings
  cookies: Cookies
  rateLimit: RateLimit | null
  metrics: NameserverMetrics
  transfers: Transfers | null
  /** Host name of this nameserver, told to whoever asks for it (RFC 5001). */
  nsid: string
  log: Logger
}

export type Responder = {
  /** The answer, or null for none; a promise where the channel gets it later. Never throws and never rejects. */
  respond(message: Buffer, peer: Peer, channel: Channel): Buffer | null | Promise<void>
}

// What passes every path without being split (the DNS flag day of 2020).
const highestUdp = 1232
const plainUdp = 512
const highestTcp = 65_535
// Waiting costs memory; beyond this many nobody waits for an address.
const highestWaiting = 1_000

export function createResponder(options: ResponderOptions): Responder {
  const { table, cache, aliases, surroundings, cookies, rateLimit, metrics, transfers, log } = options
  const nsid = Buffer.from(options.nsid, 'latin1')
  const encoder = createEncoder()
  const current = emptyQuery()
  let waiting = 0

  type Context = { message: Buffer; query: Query; peer: Peer; tcp: boolean; opt: Options | null; trusted: boolean }

  function contextOf(message: Buffer, query: Query, peer: Peer, tcp: boolean): Context {
    // An address that took part in a handshake, or shows a cookie of ours, is nobody's victim.
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
  }

  function limitOf({ query, tcp }: Context): number {
    if (tcp) return highestTcp
    return query.edns ? Math.min(highestUdp, Math.max(plainUdp, query.udpSize)) : plainUdp
  }

  /** Null if the answer stays unsent. `make` is only called for one that is sent. */
  function limited(context: Context, rcode: number, tuple: number, make: () => Buffer): Buffer | null {
    const { message, query, peer, opt, trusted } = context
    const verdict = rateLimit && !trusted ? rateLimit.judge(peer.address, tuple) : 'send'
    if (verdict === 'drop') {
      metrics.drop('rate')
      return null
    }
    metrics.count(query.type, rcode)
    return verdict === 'send' ? make() : bareAnswer(message, query, rcodes.NOERROR, opt, true)
  }

  function fault(context: Context, rcode: number): Buffer | null {
    // Errors of all names are one answer to the rate limit: they say the same.
    return limited(context, rcode, rcode, () => bareAnswer(context.message, context.query, rcode, context.opt))
  }

  function tupleOf(query: Query, found: Found, source: ZoneSource): number {
    if (found.answer.length > 0 && !found.wildcard) return query.hash
    let hash = found.rcode + 1
    for (let at = 0; at < source.origin.length; at++) {
      hash = Math.imul(hash ^ source.origin.charCodeAt(at), 0x01000193)
    }
    return hash
  }

  function answerFound(context: Context, name: string, found: Found, source: ZoneSource): Buffer | null {
    const { message, query, opt } = context
    const question = Buffer.from(`${name}\0\0\0\0`, 'latin1')
    message.copy(question, question.length - 4, query.nameEnd, query.questionEnd)
    const tuple = tupleOf(query, found, source)
    // What is said about DS at an apex hangs on two zones, and the cache on one.
    const cacheable = found.cacheable && source.live && !(query.type === typeNumbers.DS && name === source.origin)
    const limit = limitOf(context) - (opt ? optOctets(opt) : 0)
    return limited(context, found.rcode, tuple, () => {
      const whole = encoder.encode(question, name, found, highestTcp - 512)
      if (cacheable && !whole.truncated) {
        cache.set(query, { ...whole, source, rcode: found.rcode, tuple })
      }
      const fits = whole.end - whole.start <= limit
      return finishAnswer(fits ? whole : encoder.encode(question, name, found, limit), message, query, opt)
    })
  }

  function answerQuery(context: Context): Buffer | null | Promise<Buffer | null> {
    const { message, query, opt } = context
    if (query.rcode !== rcodes.NOERROR) return fault(context, query.rcode)
    if (query.class !== classIn) return fault(context, rcodes.REFUSED)
    // Transfers are TCP's, and only of whoever is set up for them.
    if (query.type === typeNumbers.AXFR || query.type === typeNumbers.IXFR) return fault(context, rcodes.REFUSED)
    const cached = cache.get(message, query)
    if (cached && cached.end - cached.start + (opt ? optOctets(opt) : 0) <= limitOf(context)) {
      return limited(context, cached.rcode, cached.tuple, () => finishAnswer(cached, message, query, opt))
    }
    const name = nameInQuery(message, query)
    const source = table.find(name, query.type)
    if (!source) return fault(context, rcodes.REFUSED)
    const found = lookup(table.zoneOf(source), name, query.type, surroundings)
    if (!found.awaits) return answerFound(context, name, found, source)
    if (waiting >= highestWaiting) return fault(context, rcodes.SERVFAIL)
    return answerLater({ ...context, query: { ...query } }, name, found.awaits)
  }

  async function answerLater(
    context: Context,
    name: string,
    awaits: NonNullable<Found['awaits']>,
  ): Promise<Buffer | null> {
    waiting++
    try {
      await aliases.settled(awaits.target, awaits.type)
    } finally {
      waiting--
    }
    // The zone may be another one by now.
    const source = table.find(name, context.query.type)
    if (!source) return fault(context, rcodes.REFUSED)
    const found = lookup(table.zoneOf(source), name, context.query.type, surroundings)
    return found.awaits ? fault(context, rcodes.SERVFAIL) : answerFound(context, name, found, source)
  }

  /** Signed messages, notices and whole zones: several messages perhaps, and later perhaps. */
  function handOver(message: Buffer, query: Query, peer: Peer, channel: Channel): Promise<void> | null {
    const special =
      query.opcode === opcodes.NOTIFY ||
      query.tsig ||
      (channel.tcp && (query.type === typeNumbers.AXFR || query.type === typeNumbers.IXFR))
    if (!transfers || !special || query.rcode === rcodes.FORMERR) return null
    return transfers.handle({
      message,
      query: { ...query },
      peer,
      tcp: channel.tcp,
      send: async (answer) => channel.send(answer, peer),
      answer: async () => {
        const again = emptyQuery()
        decodeQuery(message, again)
        return answerQuery(contextOf(message, again, peer, channel.tcp))
      },
    })
  }

  async function sendLater(later: Promise<Buffer | null>, peer: Peer, channel: Channel): Promise<void> {
    try {
      const answer = await later
      if (answer) await channel.send(answer, peer)
    } catch (err) {
      failed(err)
    }
  }

  /** A fault of ours costs one answer, not the process that answers everyone. */
  function failed(err: unknown): null {
    metrics.drop('fault')
    log.error({ err }, 'a query could not be answered')
    return null
  }

  return {
    respond(message, peer, channel) {
      try {
        const startedMs = metrics.isSampled() ? performance.now() : 0
        if (!decodeQuery(message, current)) {
          metrics.drop('unreadable')
          return null
        }
        const handed = handOver(message, current, peer, channel)
        if (handed) return handed.catch((err) => void failed(err))
        const answer = answerQuery(contextOf(message, current, peer, channel.tcp))
        if (answer instanceof Promise) return sendLater(answer, peer, channel)
        if (startedMs > 0) metrics.observe((performance.now() - startedMs) / 1000)
        return answer
      } catch (err) {
        return failed(err)
      }
    },
  }
}
