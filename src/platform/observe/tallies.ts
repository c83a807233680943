// Counters in memory, one set for each owner and host. Counting is a few additions, and no look-up.

/** What was counted since it was last taken. */
export type Counted = { owner: string; host: string; counts: number[] }

export class Tally implements Counted {
  readonly owner: string
  readonly host: string
  /** No typed array: its memory would be elsewhere, and each count a miss of the processor's cache. */
  readonly counts: number[]
  /** Those that have counted something: nobody else has to be looked at. Null for one that is never taken. */
  readonly #busy: Tally[] | null
  #listed: boolean

  constructor(owner: string, host: string, width: number, busy: Tally[] | null) {
    this.owner = owner
    this.host = host
    this.counts = new Array<number>(width).fill(0)
    this.#busy = busy
    this.#listed = busy === null
  }

  /** The counters, to be added to at once. Whoever holds a tally may do so at any time: nothing is lost. */
  open(): number[] {
    if (!this.#listed) {
      this.#listed = true
      this.#busy!.push(this)
    }
    return this.counts
  }

  take(): Counted {
    const { owner, host } = this
    const counts = this.counts.slice()
    this.counts.fill(0)
    this.#listed = false
    return { owner, host, counts }
  }
}

export type Tallies = {
  create(owner: string, host: string): Tally
  /** Adds up for nobody, such as visits to names of the platform itself. */
  readonly nobody: Tally
  /** What was counted since the last time; the counters begin anew. */
  take(): Counted[]
}

export function createTallies(width: number): Tallies {
  const busy: Tally[] = []
  return {
    create: (owner, host) => new Tally(owner, host, width, busy),
    nobody: new Tally('', '', width, null),
    take() {
      const taken = busy.map((tally) => tally.take())
      busy.length = 0
      return taken
    },
  }
}
