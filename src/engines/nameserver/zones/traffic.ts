// Counts queries by zone, never by name, because anybody can make up any number of names.
import { rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { type Counted, createTallies, type Tallies, type Tally } from '../../../platform/observe/tallies.ts'
import { answerCodes, questionTypes } from '../../../schemas/traffic.ts'
import { dnsColumns } from '../../../schemas/traffic-columns.ts'

export type TallyBook = { of(zone: string): Tally; take(): Counted[] }

// A tally can be used after it was dropped from the book, so the book can be cleared at any time.
const maxInABook = 10_000

/** Tallies by zone id, for the threads. */
export function createTallyBook(tallies = createZoneTallies()): TallyBook {
  const known = new Map<string, Tally>()
  return {
    of(zone) {
      const found = known.get(zone)
      if (found) return found
      if (known.size === maxInABook) known.clear()
      const tally = tallies.create(zone, '')
      known.set(zone, tally)
      return tally
    },
    take: tallies.take,
  }
}

export function createZoneTallies(): Tallies {
  return createTallies(dnsColumns.length)
}

// The index of a type's count; unknown types share the last one.
const typeAt = new Uint8Array(258).fill(questionTypes.indexOf('other'))
for (const [index, type] of questionTypes.entries()) if (type !== 'other') typeAt[typeNumbers[type]] = index
const codeAt = new Uint8Array(32).fill(questionTypes.length + answerCodes.indexOf('other'))
for (const [index, code] of answerCodes.entries()) {
  if (code !== 'other') codeAt[rcodes[code]] = questionTypes.length + index
}

/** Counts an answer that was sent once or several times. */
export function countQuestion(tally: Tally, type: number, rcode: number, times = 1): void {
  const counts = tally.open()
  counts[typeAt[type < typeAt.length ? type : 0]!]! += times
  counts[codeAt[rcode & 31]!]! += times
}

/** Adds the counts of another thread. */
export function addQuestions(tally: Tally, { counts }: Pick<Counted, 'counts'>): void {
  const own = tally.open()
  for (let index = 0; index < own.length; index++) own[index]! += counts[index]!
}
