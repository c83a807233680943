// Invalidates cached answers in all threads at once: each zone has a number that changes with the zone.
import type { Tally } from '../../../platform/observe/tallies.ts'

export type Generations = {
  /** Invalidates every answer of this zone. */
  end(origin: string): void
  /** Invalidates every answer of every zone. */
  endAll(): void
  /** The current stamp for answers of this zone. */
  stampOf(origin: string): Stamp
}

/** Slot of the zone, its generation, and the era of all zones. */
export type Stamp = readonly [slot: number, generation: number, era: number]

// Zones that share a slot invalidate each other's answers, which only costs a query to the main thread.
const slotBits = 16
const eraAt = 1 << slotBits

export function generationMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((eraAt + 1) * Int32Array.BYTES_PER_ELEMENT)
}

function slotOf(origin: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < origin.length; at++) hash = Math.imul(hash ^ origin.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 15)) & (eraAt - 1)
}

export function createGenerations(memory: SharedArrayBuffer): Generations {
  const numbers = new Int32Array(memory)
  return {
    end: (origin) => void Atomics.add(numbers, slotOf(origin), 1),
    endAll: () => void Atomics.add(numbers, eraAt, 1),
    stampOf(origin) {
      const slot = slotOf(origin)
      return [slot, Atomics.load(numbers, slot), Atomics.load(numbers, eraAt)]
    },
  }
}

/** The validity of an answer in another thread's cache. */
export class Stamped {
  readonly #numbers: Int32Array
  readonly #slot: number
  readonly #generation: number
  readonly #era: number
  readonly tally: Tally

  constructor(numbers: Int32Array, [slot, generation, era]: Stamp, tally: Tally) {
    this.#numbers = numbers
    this.#slot = slot
    this.#generation = generation
    this.#era = era
    this.tally = tally
  }

  get live(): boolean {
    return (
      Atomics.load(this.#numbers, this.#slot) === this.#generation && Atomics.load(this.#numbers, eraAt) === this.#era
    )
  }
}
