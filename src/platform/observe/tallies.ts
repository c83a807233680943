// Counters in memory, one set per owner and host. Counting takes a few additions and no lookup.

/** Counts since the last call of `take`. */
export type Counted = { owner: string; host: string; counts: number[] }

export class Tally implements Counted {
  readonly owner: string
  readonly host: string
  /** Not a typed array: its memory would be elsewhere, and each count a cache miss. */
  readonly counts: number[]
  /** Tallies that have counted something; only these are read. Null for one that is never read. */
  readonly #busy: Tally[] | null
  #listed: boolean

  constructor(owner: string, host: string, width: number, busy: Tally[] | null) {
    this.owner = owner
    this.host = host
    this.counts = new Array<number>(width).fill(0)
    this.#busy = busy
    this.#listed = busy === null
  }

  /** The counters, to be incremented at once. The holder of a tally may call this at any time: no count is lost. */
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
  /** For counts that belong to nobody, such as visits to the platform's own names. */
  readonly nobody: Tally
  /** Returns what was counted since the last call, and resets the counters. */
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
