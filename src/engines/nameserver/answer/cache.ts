// Caches encoded answers until their zone changes: by question, or for all nonexistent names below a name; in a signed zone,
// for each gap of its chain.

import { headerOctets } from '../../../dns/packet/numbers.ts'
import type { Query } from '../../../dns/packet/query.ts'
import { lowerCase } from '../../../dns/packet/wire-names.ts'
import type { Tally } from '../../../platform/observe/tallies.ts'
import type { Gaps } from '../zones/gaps.ts'
import { countQuestion } from '../zones/traffic.ts'
import type { Template } from './encode.ts'

/** The zone of an answer: whether this version is still current, and where to count its queries. */
export type AnswerSource = { readonly live: boolean; readonly tally: Tally | null }

export type CachedAnswer<Source extends AnswerSource> = Template & {
  /** The answer is valid while this is live. */
  source: Source
  rcode: number
  /** Answers with the same tuple count as equal for the rate limit. */
  tuple: number
  /** The type in its question. */
  type: number
  /** Which clients it is for. In a signed zone, clients that request signatures get another answer. */
  dnssec: Dnssec
  /** If `below` has a gap, finds the gap of a name. */
  gaps: Gaps | null
  /** How often it was sent since its zone's queries were last counted. */
  hits: number
}

export type Dnssec = 'any' | 'without' | 'with'

/** The hash under which the answer to a query is stored. */
export const answerHash = (hash: number, dnssec: Dnssec) => (dnssec === 'with' ? ~hash : hash)

const isFor = ({ dnssec }: { dnssec: Dnssec }, { dnssecOk }: Query) =>
  dnssec === 'any' || dnssecOk === (dnssec === 'with')

export type AnswerCache<Source extends AnswerSource> = {
  get(message: Buffer, query: Query): CachedAnswer<Source> | null
  /** The answer for a nonexistent name, by its closest existing ancestor. */
  getBelow(message: Buffer, query: Query, encloser: Encloser): CachedAnswer<Source> | null
  /** `hash` is the `answerHash` of the query, or `belowHash` for an answer to all names below another. */
  set(hash: number, answer: Omit<CachedAnswer<Source>, 'type' | 'hits'>): void
  clear(): void
  /** Records that an answer was sent. Only touches the answer, which is in the processor's cache anyway. */
  hit(answer: CachedAnswer<Source>): void
  /** Counts the sent answers for their zones. Call it before reading the counts. */
  count(): void
}

/** The offset at which an existing ancestor starts in the name of a question, and its hash in the name filter. */
export type Encloser = { readonly encloserAt: number; readonly encloserHash: number }

export const belowHash = (encloserHash: number, type: number) => Math.imul(encloserHash ^ type, 0x01000193)

/** The hash of the answer for one gap, and that of the entry which finds the gap of a name. */
const gapHash = (hash: number, gap: number) => Math.imul(~hash ^ Math.imul(gap + 1, 0x9e3779b1), 0x01000193)
const gapsHash = (hash: number) => ~hash

/** Stands for nonexistent names in an answer template. It isn't an octet, so no real name contains it. */
export const standIn = '\x01\u0100'

const slabOctets = 1 << 20
const capacityStep = 64
// Long answers are rare and take the space of many short ones.
const maxOctets = 4096
// How many sent answers may wait to be counted, even if they are no longer cached.
const maxSent = 10_000

/**
 * Each question has one slot, and a later question with the same slot replaces it. So there is no list to maintain, and
 * random names can't make the cache grow. The octets are in slabs, so the garbage collector sees a few objects instead of
 * one per answer. A slot keeps its space, so that changing answers don't take more; when the slabs are full, the whole cache
 * is cleared.
 */
export function createAnswerCache<Source extends AnswerSource>(slotBits = 18, slabs = 64): AnswerCache<Source> {
  const mask = (1 << slotBits) - 1
  let slots = new Array<CachedAnswer<Source> | undefined>(mask + 1).fill(undefined)
  // The space of each slot: the number and offset of its slab combined into one number, and its size.
  const places = new Uint32Array(mask + 1)
  const capacities = new Uint16Array(mask + 1)
  const memory: Buffer[] = []
  let slab = 0
  let used = 0
  let sent: CachedAnswer<Source>[] = []

  function count(): void {
    for (const answer of sent) {
      const { tally } = answer.source
      if (tally) countQuestion(tally, answer.type, answer.rcode, answer.hits)
      answer.hits = 0
    }
    sent = []
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
    capacities.fill(0)
    slab = 0
    used = 0
  }

  /** Allocates space for an answer in steps, so that an answer that grows a little still fits. */
  function allocate(slot: number, length: number): void {
    const capacity = Math.ceil(length / capacityStep) * capacityStep
    if (used + capacity > slabOctets) {
      slab++
      used = 0
      if (slab === slabs) clear()
    }
    memory[slab] ??= Buffer.allocUnsafeSlow(slabOctets)
    places[slot] = slab * slabOctets + used
    capacities[slot] = capacity
    used += capacity
  }

  function put(slot: number, answer: Omit<CachedAnswer<Source>, 'type' | 'hits'>): void {
    const { source, rcode, tuple, dnssec, below, gaps } = answer
    const length = answer.end - answer.start
    if (length > capacities[slot]!) allocate(slot, length)
    const octets = memory[Math.floor(places[slot]! / slabOctets)]!
    const start = places[slot]! % slabOctets
    const end = start + answer.octets.copy(octets, start, answer.start, answer.end)
    const type = typeOf(octets, start)
    slots[slot] = { octets, start, end, below, source, rcode, tuple, dnssec, gaps, type, hits: 0 }
  }

  /** The entry of a slot for all names below another, or for those in a gap. */
  function belowAt(slot: number, gap: number | null): CachedAnswer<Source> | null {
    const entry = liveAt(slot)
    return entry?.below && entry.below.gap === gap ? entry : null
  }

  return {
    clear,
    count,
    hit(answer) {
      if (answer.hits++ === 0 && sent.push(answer) === maxSent) count()
    },
    get(message, query) {
      const signed = query.dnssecOk ? liveAt(slotOf(answerHash(query.hash, 'with'))) : null
      const entry = signed?.dnssec === 'with' ? signed : liveAt(slotOf(query.hash))
      if (entry === null || entry.below || !isFor(entry, query)) return null
      // The name in a template's question is lower case; the type and class after it are compared as they are.
      return isEqual(entry, message, headerOctets, query) ? entry : null
    },
    getBelow(message, query, { encloserAt, encloserHash }) {
      const hash = belowHash(encloserHash, query.type)
      const entry = belowAt(slotOf(hash), null)
      if (entry && isBelow(entry, message, query, encloserAt)) return entry
      const all = query.dnssecOk ? belowAt(slotOf(gapsHash(hash)), gapsAlone) : null
      if (!all || !isBelow(all, message, query, encloserAt)) return null
      const gap = all.gaps!.find(message, query.nameEnd, encloserAt)
      const own = belowAt(slotOf(gapHash(hash, gap)), gap)
      return own && isBelow(own, message, query, encloserAt) ? own : null
    },
    set(hash, answer) {
      if (answer.end - answer.start > maxOctets) return
      const { below, gaps } = answer
      if (!below || below.gap === null) return put(slotOf(hash), answer)
      put(slotOf(gapHash(hash, below.gap)), answer)
      const known = slots[slotOf(gapsHash(hash))]
      if (known?.gaps === gaps && known.below?.gap === gapsAlone && known.source.live) return
      // Only the question.
      const end = answer.start + below.questionEnd
      put(slotOf(gapsHash(hash)), { ...answer, end, below: { ...below, gap: gapsAlone } })
    },
  }
}

const generalAt = headerOctets + standIn.length
/** In place of a gap: an entry without an answer, which only finds the gap of a name. */
const gapsAlone = -1

/** Whether a template matches the question of a message, comparing the name from a label on. */
function isEqual({ octets, start, below }: Template, message: Buffer, from: number, query: Query): boolean {
  const { nameEnd, questionEnd } = query
  const moved = start + (below ? generalAt : headerOctets) - from
  for (let at = from; at < nameEnd; at++) if (octets[at + moved] !== lowerCase[message[at]!]) return false
  for (let at = nameEnd; at < questionEnd; at++) if (octets[at + moved] !== message[at]) return false
  return true
}

/** Whether an answer for all names below another applies to this question, in which that name starts at `encloserAt`. */
function isBelow(entry: CachedAnswer<AnswerSource>, message: Buffer, query: Query, encloserAt: number): boolean {
  if (!isFor(entry, query)) return false
  if (query.questionEnd - encloserAt !== entry.below!.questionEnd - generalAt) return false
  return isEqual(entry, message, encloserAt, query)
}

/** The type in the question of an answer, which follows the name. */
function typeOf(octets: Buffer, start: number): number {
  let at = start + headerOctets
  while (octets[at]! > 0) at += 1 + octets[at]!
  return (octets[at + 1]! << 8) | octets[at + 2]!
}
