// Caches encoded answers by question until their zone changes; names in them are pointers to the question.

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
  /** How often it was given and not counted for its zone yet. */
  hits: number
}

export type AnswerCache<Source extends AnswerSource> = {
  get(message: Buffer, query: Query): CachedAnswer<Source> | null
  set(query: Pick<Query, 'hash'>, answer: Omit<CachedAnswer<Source>, 'hits'>): void
  clear(): void
  /** Notes that an answer was given. Nothing is touched but the answer, which the processor's cache has by then. */
  hit(answer: CachedAnswer<Source>): void
  /** Counts for their zones what was given; to be called before that is read. */
  count(): void
}

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
      const slot = (query.hash ^ (query.hash >>> 15)) & mask
      const entry = slots[slot]
      if (entry === undefined) return null
      if (!entry.source.live) {
        slots[slot] = undefined
        return null
      }
      // The name in a template's question is lower case; type and class after it are compared as they are.
      const { octets, start } = entry
      const { nameEnd, questionEnd } = query
      for (let at = headerOctets; at < nameEnd; at++) {
        if (octets[start + at] !== lowerCase[message[at]!]) return null
      }
      for (let at = nameEnd; at < questionEnd; at++) if (octets[start + at] !== message[at]) return null
      return entry
    },
    set(query, answer) {
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
      slots[(query.hash ^ (query.hash >>> 15)) & mask] = { ...answer, octets, start, end: used, hits: 0 }
    },
  }
}

/** The type in the question of an answer, after its name. */
function typeOf({ octets, start }: Template): number {
  let at = start + headerOctets
  while (octets[at]! > 0) at += 1 + octets[at]!
  return (octets[at + 1]! << 8) | octets[at + 2]!
}
