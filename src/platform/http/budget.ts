// What one connection's untrusted bytes may cost: a share of each turn of the event loop, and no flood of tiny pieces.
import { nextTurn } from '../pauses.ts'

// A parser's callback into JavaScript takes 1 to 2 µs, so a share is at most a millisecond.
const maxTurnSteps = 512
// Only an attack keeps sending less than this with each piece.
const usualBytes = 16
// What a body of unusually small pieces may have beyond that, and what a stream that lasts gets again.
const maxCredit = 8_192
const creditPerMs = 1

let turn = 0
let turnEnds = false

/** Changes with each turn of the event loop in which anyone asks. */
function currentTurn(): number {
  if (!turnEnds) {
    turnEnds = true
    setImmediate(() => {
      turn++
      turnEnds = false
    })
  }
  return turn
}

/** A piece is whatever a parser calls back for: a read, a chunk, a frame, a line. */
export class Budget {
  #turn = -1
  #steps = 0
  #credit = maxCredit
  #refilledMs = performance.now()

  /** Pays for pieces with the bytes they came in. False: the peer floods, and the connection is to be closed. */
  count(pieces: number, bytes: number): boolean {
    this.spend(pieces)
    this.#credit = Math.min(maxCredit, this.#credit + bytes / usualBytes - pieces)
    return this.#credit >= 0 || this.#refill()
  }

  /** Adds work to this turn without suspicion; a step is the work of one piece. */
  spend(steps: number): void {
    const now = currentTurn()
    if (this.#turn !== now) this.#steps = 0
    this.#turn = now
    this.#steps += steps
  }

  /** The share of this turn is used up: put back what is left, and go on after `later`. */
  get isSpent(): boolean {
    return this.#steps >= maxTurnSteps && this.#turn === currentTurn()
  }

  /** Of all connections that have used up their share, one goes on in each turn. */
  later(work: () => void): void {
    nextTurn(() => {
      this.#steps = 0
      work()
    })
  }

  #refill(): boolean {
    const now = performance.now()
    this.#credit = Math.min(maxCredit, this.#credit + (now - this.#refilledMs) * creditPerMs)
    this.#refilledMs = now
    return this.#credit >= 0
  }
}

// Above this, copying costs more than another write.
const largeBytes = 4 << 10
const maxHeldBytes = 64 << 10

/** Joins small pieces, so that whoever gets them has one write a turn, however they were framed. */
export class Gatherer {
  #held: Buffer[] = []
  #bytes = 0
  readonly #deliver: (pieces: Buffer[], bytes: number) => void
  readonly #endTurn = () => this.flush()

  constructor(deliver: (pieces: Buffer[], bytes: number) => void) {
    this.#deliver = deliver
  }

  take(piece: Buffer): void {
    if (piece.length === 0) return
    const isFirst = this.#held.length === 0
    this.#held.push(piece)
    this.#bytes += piece.length
    if (this.#bytes >= (isFirst ? largeBytes : maxHeldBytes)) this.flush()
    else if (isFirst) setImmediate(this.#endTurn)
  }

  flush(): void {
    if (this.#held.length === 0) return
    const [held, bytes] = [this.#held, this.#bytes]
    this.drop()
    this.#deliver(held, bytes)
  }

  drop(): void {
    this.#held = []
    this.#bytes = 0
  }
}
