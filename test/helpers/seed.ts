// Properties use the same values in every run, so that failures are reproducible. BERTH_SEED chooses other ones.
import fc from 'fast-check'

export const seed = Number(process.env.BERTH_SEED ?? 0) || 20261114
fc.configureGlobal({ seed })

/** Tier 2 tries many more values. */
export const isSystemTier = process.env.BERTH_TIER === 'system'

/** The number of values of a long property: all in tier 2, a fifth in tier 1. */
export const valuesToTry = (all: number): number => (isSystemTier ? all : Math.ceil(all / 5))

/** Splits the cases among many operations, so that together they cover all; with more runs, each operation gets all cases. */
export function share<T>(cases: T[], index: number): T[] {
  const every = Math.min(10, cases.length)
  return isSystemTier ? cases : cases.filter((_, n) => (n + index) % every === 0)
}

/** Random values that depend only on the seed, instead of node:crypto's. */
export function seededRandom() {
  let state = seed >>> 0
  /** An integer from 0 up to, but not including, `end`. */
  const randomInt = (end: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end)
  }
  const randomBytes = (size: number) => Buffer.from(Array.from({ length: size }, () => randomInt(256)))
  return { randomInt, randomBytes }
}
