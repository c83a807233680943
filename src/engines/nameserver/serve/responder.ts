// Answers a packet over UDP or TCP: from the cache, from the zone, or once a new ALIAS has its addresses.
import type { Logger } from 'pino'
import { extendedErrors, headerOctets, opcodes, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { decodeQuery, emptyQuery, nameInQuery, type Query } from '../../../dns/packet/query.ts'
import { type AnswerCache, answerHash, belowHash, type Dnssec, standIn } from '../answer/cache.ts'
import type { Cookies } from '../answer/cookies.ts'
import { answerOctets, createEncoder, type Encoded, finishAnswer, optOctets } from '../answer/encode.ts'
import type { NameserverMetrics } from '../answer/metrics.ts'
import type { RateLimit } from '../answer/rate-limit.ts'
import type { Transfers } from '../answer/transfers.ts'
import { type Context, createAnswersWithoutZones, isSpecial, type Peer } from '../answer/without-zones.ts'
import { gapsOf } from '../dnssec/gap-tables.ts'
import { isSigned, lookupBelowSigned, lookupSigned } from '../dnssec/sets.ts'
import type { Updates } from '../update/updates.ts'
import { withoutOthers } from '../zones/chains.ts'
import { encloserOf, type LookupResult, lookup, type OutsideAddresses } from '../zones/lookup.ts'
import type { Aliases } from '../zones/outside.ts'
import { countQuestion } from '../zones/traffic.ts'
import type { ZoneSource, ZoneTable } from '../zones/zone-table.ts'

/** A UDP socket or a TCP connection. */
export type Channel = {
  tcp: boolean
  send(answer: Buffer, peer: Peer): void | Promise<void>
  /** Aborted when a connection closes. */
  readonly signal?: AbortSignal
  /** Aborted when the client ends its side: it may be gone, or still read what is sent at once. */
  readonly leaving?: AbortSignal
}

export type ResponderOptions = {
  table: ZoneTable
  cache: AnswerCache<ZoneSource>
  aliases: Aliases
  outside: OutsideAddresses
  cookies: Cookies
  rateLimit: RateLimit | null
  metrics: NameserverMetrics
  transfers: Transfers | null
  /** Without it, updates are answered with NOTIMP. */
  updates?: Updates | null
  /** Handles every NOTIFY message; by default, `transfers` does. */
  notices?: Transfers | null
  /** Host name of this nameserver, sent to clients that request it (NSID, RFC 5001). */
  nsid: string
  log: Logger
}

export type Responder = {
  /** The answer, null for none, or a promise if the answer is sent to the channel later. Never throws or rejects. */
  respond(message: Buffer, peer: Peer, channel: Channel): Buffer | null | Promise<void>
}

const maxTcp = 65_535
// Waiting queries cost memory. Above these numbers, in total or per account, a query fails instead of waiting.
const maxWaiting = { account: 200, all: 1_000 }

const dnssecOf = ({ dnssecOk }: Query, { signing }: ZoneSource): Dnssec =>
  signing === null ? 'any' : dnssecOk ? 'with' : 'without'

/** The question of a packet with another name. */
function questionOf(message: Buffer, query: Query, name: string): Buffer {
  const question = Buffer.from(`${name}\0\0\0\0`, 'latin1')
  message.copy(question, question.length - 4, query.nameEnd, query.questionEnd)
  return question
}

export function createResponder(options: ResponderOptions): Responder {
  const { table, cache, aliases, outside, metrics, transfers, updates = null, notices = null, log } = options
  const withoutZones = createAnswersWithoutZones({ ...options, filter: table.filter, tallies: metrics })
  const { contextOf, limitOf, limited, fault } = withoutZones
  const encoder = createEncoder()
  const current = emptyQuery()
  let waiting = 0
  const waitingOf = new Map<string, number>()

  function tupleOf(query: Query, found: LookupResult, source: ZoneSource): number {
    if (found.answer.length > 0 && !found.wildcard) return query.hash
    let hash = found.rcode + 1
    for (let at = 0; at < source.origin.length; at++) {
      hash = Math.imul(hash ^ source.origin.charCodeAt(at), 0x01000193)
    }
    return hash
  }

  /** Encodes without a size limit. The encoder is called again if the result is too long for this packet. */
  function encodeFull({ message, query }: Context, name: string, found: LookupResult): Encoded {
    return encoder.encode(questionOf(message, query, name), name, found, maxTcp)
  }

  function fits(context: Context, whole: Encoded): boolean {
    const { query, opt } = context
    return !whole.truncated && answerOctets(whole, query) + (opt ? optOctets(opt) : 0) <= limitOf(context)
  }

  function find(source: ZoneSource, name: string, { type, dnssecOk }: Query): LookupResult {
    const zone = table.zoneOf(source)
    return isSigned(zone) ? lookupSigned(zone, { name, type, dnssecOk }, outside) : findPlain(source, name, type)
  }

  function findPlain(source: ZoneSource, name: string, type: number): LookupResult {
    const found = lookup(table.zoneOf(source), name, type, outside)
    return withoutOthers(found, (end) => table.find(end, type) !== source)
  }

  function answerFound(context: Context, name: string, found: LookupResult, source: ZoneSource): Buffer | null {
    const { message, query, opt } = context
    const tuple = tupleOf(query, found, source)
    // A DS answer at an apex depends on two zones, but a cache entry on one.
    const cacheable = found.cacheable && source.live && !(query.type === typeNumbers.DS && name === source.origin)
    const made = limited(context, found.rcode, tuple, () => {
      const whole = encodeFull(context, name, found)
      const dnssec = dnssecOf(query, source)
      if (cacheable && !whole.truncated) {
        cache.set(answerHash(query.hash, dnssec), { ...whole, source, rcode: found.rcode, tuple, dnssec, gaps: null })
      }
      if (fits(context, whole)) return finishAnswer(whole, message, query, opt)
      const limit = limitOf(context) - (opt ? optOctets(opt) : 0)
      return finishAnswer(encoder.encode(questionOf(message, query, name), name, found, limit), message, query, opt)
    })
    if (made) countQuestion(table.tallyOf(source), query.type, found.rcode)
    return made
  }

  /**
   * The answer for a nonexistent name is cached for all such names below its closest encloser; with signatures, for those in
   * its gap. Undefined if the name exists, or needs an answer of its own.
   */
  function answerBelow(context: Context, name: string, source: ZoneSource): Buffer | null | undefined {
    const { message, query, opt } = context
    const dnssec = dnssecOf(query, source)
    const zone = table.zoneOf(source)
    const encloser = encloserOf(zone, name)
    if (encloser === null || !source.live || !table.announce(source)) return undefined
    const signed = dnssec === 'with' && isSigned(zone) ? zone : null
    const gaps = signed && gapsOf(signed)
    if (signed && !gaps) return undefined
    const general = standIn + encloser
    const found = signed
      ? lookupBelowSigned(signed, { name, general, type: query.type }, outside)
      : findPlain(source, general, query.type)
    if (!found.general || !found.cacheable) return undefined
    const encoded = encodeFull(context, general, found)
    const questionEnd = headerOctets + general.length + 4
    const gap = gaps?.find(message, query.nameEnd, query.nameEnd - encloser.length) ?? null
    const whole = { ...encoded, below: { questionEnd, pointers: encoded.pointers, gap } }
    const tuple = tupleOf(query, found, source)
    const hash = belowHash(table.filter.hashOf(encloser), query.type)
    if (!whole.truncated) cache.set(hash, { ...whole, source, rcode: found.rcode, tuple, dnssec, gaps })
    if (!fits(context, whole)) {
      return answerFound(context, name, { ...find(source, name, query), cacheable: false }, source)
    }
    const made = limited(context, found.rcode, tuple, () => finishAnswer(whole, message, query, opt))
    if (made) countQuestion(table.tallyOf(source), query.type, found.rcode)
    return made
  }

  /** The zone exists, but its answer isn't available in time. */
  function failLate(context: Context, source: ZoneSource): Buffer | null {
    const made = fault(context, rcodes.SERVFAIL, extendedErrors.notReady)
    if (made) countQuestion(table.tallyOf(source), context.query.type, rcodes.SERVFAIL)
    return made
  }

  function answerQuery(context: Context): Buffer | null | Promise<Buffer | null> {
    const answered = withoutZones.answer(context)
    if (answered !== undefined) return answered
    const { message, query } = context
    const name = nameInQuery(message, query)
    const source = table.find(name, query.type)
    if (!source) return fault(context, rcodes.REFUSED, extendedErrors.notAuthoritative)
    const below = answerBelow(context, name, source)
    if (below !== undefined) return below
    const found = find(source, name, query)
    if (!found.awaits) return answerFound(context, name, found, source)
    const { accountId } = source
    const ofAccount = waitingOf.get(accountId) ?? 0
    if (waiting >= maxWaiting.all || ofAccount >= maxWaiting.account) return failLate(context, source)
    waiting++
    waitingOf.set(accountId, ofAccount + 1)
    return answerLater({ ...context, query: { ...query } }, name, source.name).finally(() => {
      waiting--
      const left = waitingOf.get(accountId)! - 1
      if (left > 0) waitingOf.set(accountId, left)
      else waitingOf.delete(accountId)
    })
  }

  /** Waits for the addresses of a new ALIAS in a zone. */
  async function answerLater(context: Context, name: string, zone: string) {
    await aliases.settled(zone)
    // The zone may have changed in the meantime.
    const source = table.find(name, context.query.type)
    if (!source) return fault(context, rcodes.REFUSED, extendedErrors.notAuthoritative)
    const found = find(source, name, context.query)
    return found.awaits ? failLate(context, source) : answerFound(context, name, found, source)
  }

  /** Passes transfers and updates to their handlers, which may send several messages later. */
  function handOver(message: Buffer, query: Query, peer: Peer, channel: Channel): Promise<void> | null {
    const { opcode } = query
    const handler = opcode === opcodes.UPDATE ? updates : ((opcode === opcodes.NOTIFY ? notices : null) ?? transfers)
    if (!handler || !isSpecial(query, channel.tcp) || query.rcode === rcodes.FORMERR) return null
    const copy = { ...query }
    return handler.handle({
      message,
      query: copy,
      peer,
      tcp: channel.tcp,
      signal: channel.signal,
      leaving: channel.leaving,
      send: async (answer) => channel.send(answer, peer),
      refuse: async (answer) => {
        const rcode = answer[3]! & 0x0f
        const made = limited(contextOf(message, copy, peer, channel.tcp), rcode, rcode, () => answer)
        if (made) await channel.send(made, peer)
      },
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

  /** An internal error costs one answer, not the process. */
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
        const handled = handOver(message, current, peer, channel)
        if (handled) return handled.catch((err) => void failed(err))
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
