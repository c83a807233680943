// Caches encoded answers until their zone changes: by question, or by the name below which no asked name exists.

import { headerOctets } from '../../dns/packet/numbers.ts'
import type { Query } from '../../dns/packet/query.ts'
import { lowerCase } from '../../dns/packet/wire-names.ts'
import type { Tally } from '../../services/traffic/tallies.ts'
import type { Template } from './encode.ts'
import { countQuestion } from './traffic.ts'

/** The zone of an answer: whether it still holds, and what its questions are counted by. */
export type AnswerSource = { readonly live: boolean; readonly tally: Tally | null }

export type CachedAnswer<Source extends AnswerSource> = Template & {
  /** The answer is valid while this is live. */
  source: Source
  rcode: number
  /** What counts as the same answer for the rate limit. */
  tuple: number
  /** For whom it is: of a signed zone, who asks for signatures has another answer than who does not. */
  dnssec: Dnssec
  /** How often it was given and not counted for its zone yet. */
  hits: number
}

export type Dnssec = 'any' | 'without' | 'with'

/** Where the answer to a query is kept. */
export const answerHash = (hash: number, dnssec: Dnssec) => (dnssec === 'with' ? ~hash : hash)

const isFor = ({ dnssec }: { dnssec: Dnssec }, { dnssecOk }: Query) =>
  dnssec === 'any' || dnssecOk === (dnssec === 'with')

export type AnswerCache<Source extends AnswerSource> = {
  get(message: Buffer, query: Query): CachedAnswer<Source> | null
  /** The answer to a name that does not exist, by the closest one above it that does. */
  getBelow(message: Buffer, query: Query, encloser: Encloser): CachedAnswer<Source> | null
  /** `hash` is the `answerHash` of the query, or `belowHash` for an answer to all names below another. */
  set(hash: number, answer: Omit<CachedAnswer<Source>, 'hits'>): void
  clear(): void
  /** Notes that an answer was given. Nothing is touched but the answer, which the processor's cache has by then. */
  hit(answer: CachedAnswer<Source>): void
  /** Counts for their zones what was given; to be called before that is read. */
  count(): void
}

/** Where a name that exists begins in the name of a question, and its hash in the filter of names. */
export type Encloser = { readonly encloserAt: number; readonly encloserHash: number }

export const belowHash = (encloserHash: number, type: number) => Math.imul(encloserHash ^ type, 0x01000193)

/** Stands for the names that do not exist in the template of their answer: it is no octet, so that no name has it. */
export const standIn = '\x01\u0100'

const slabOctets = 1 << 20
// Long answers are rare and take the place of many short ones.
const highestOctets = 4096
// Answers that were given wait for being counted, also if they are in the cache no more.
const mostGiven = 10_000

/**
 * A question has one slot; a later question with the same slot replaces it. So there is no list to maintain, and random
 * names cannot make the cache grow. The octets are in slabs, so the garbage collector sees a few objects instead of
 * one per answer. When the slabs are full, the whole cache is cleared.
 */
export function createAnswerCache<Source extends AnswerSource>(slotBits = 18, slabs = 64): AnswerCache<Source> {
  const mask = (1 << slotBits) - 1
  let slots = new Array<CachedAnswer<Source> | undefined>(mask + 1).fill(undefined)
  const memory: Buffer[] = []
  let slab = 0
  let used = 0
  let given: CachedAnswer<Source>[] = []

  function count(): void {
    for (const answer of given) {
      const { tally } = answer.source
      if (tally) countQuestion(tally, typeOf(answer), answer.rcode, answer.hits)
      answer.hits = 0
    }
    given = []
  }

  const slotOf = (hash: number) => (hash ^ (hash >>> 15)) & mask

  function liveAt(slot: number): CachedAnswer<Source> | null {
    const entry = slots[slot]
    if (entry === undefined) return null
    if (entry.source.live) return entry
    slots[slot] = undefined
    return null
  }

  function clear(): void {
    slots = new Array<CachedAnswer<Source> | undefined>(mask + 1).fill(undefined)
    slab = 0
    used = 0
  }

  return {
    clear,
    count,
    hit(answer) {
      if (answer.hits++ === 0 && given.push(answer) === mostGiven) count()
    },
    get(message, query) {
      const signed = query.dnssecOk ? liveAt(slotOf(answerHash(query.hash, 'with'))) : null
      const entry = signed?.dnssec === 'with' ? signed : liveAt(slotOf(query.hash))
      if (entry === null || entry.below || !isFor(entry, query)) return null
      // The name in a template's question is lower case; type and class after it are compared as they are.
      return isEqual(entry, message, headerOctets, query) ? entry : null
    },
    getBelow(message, query, { encloserAt, encloserHash }) {
      const entry = liveAt(slotOf(belowHash(encloserHash, query.type)))
      if (!entry?.below || !isFor(entry, query)) return null
      if (query.questionEnd - encloserAt !== entry.below.questionEnd - belowAt) return null
      return isEqual(entry, message, encloserAt, query) ? entry : null
    },
    set(hash, { source, rcode, tuple, dnssec, below, ...answer }) {
      const length = answer.end - answer.start
      if (length > highestOctets) return
      if (used + length > slabOctets) {
        slab++
        used = 0
        if (slab === slabs) clear()
      }
      memory[slab] ??= Buffer.allocUnsafeSlow(slabOctets)
      const octets = memory[slab]!
      const start = used
      used += answer.octets.copy(octets, start, answer.start, answer.end)
      slots[slotOf(hash)] = { octets, start, end: used, below, source, rcode, tuple, dnssec, hits: 0 }
    },
  }
}

const belowAt = headerOctets + standIn.length

/** Whether a template is for the question of a message, whose name is compared from a label on. */
function isEqual({ octets, start, below }: Template, message: Buffer, from: number, query: Query): boolean {
  const { nameEnd, questionEnd } = query
  const moved = start + (below ? belowAt : headerOctets) - from
  for (let at = from; at < nameEnd; at++) if (octets[at + moved] !== lowerCase[message[at]!]) return false
  for (let at = nameEnd; at < questionEnd; at++) if (octets[at + moved] !== message[at]) return false
  return true
}

/** The type in the question of an answer, after its name. */
function typeOf({ octets, start }: Template): number {
  let at = start + headerOctets
  while (octets[at]! > 0) at += 1 + octets[at]!
  return (octets[at + 1]! << 8) | octets[at + 2]!
}
