// Limits what one connection's untrusted bytes may cost: a share of each event-loop turn, and no flood of tiny pieces.
import { nextTurn } from '../pauses.ts'

// A parser's callback into JavaScript takes 1 to 2 µs, so a share is at most a millisecond.
const maxTurnSteps = 512
// Only an attacker keeps sending less than this per piece.
const usualBytesPerPiece = 16
// What a body of unusually small pieces may use beyond that, and how fast a long stream gets it back.
const maxCredit = 8_192
const creditPerMs = 1

let turn = 0
let turnEnds = false

/** Changes with each turn of the event loop in which it is called. */
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

/** Counts pieces: whatever a parser calls back for, such as a read, a chunk, a frame or a line. */
export class Budget {
  #turn = -1
  #steps = 0
  #credit = maxCredit
  #refilledMs = performance.now()

  /** Charges pieces against the bytes they came in. False if the peer is flooding, and the connection should be closed. */
  count(pieces: number, bytes: number): boolean {
    this.spend(pieces)
    this.#credit = Math.min(maxCredit, this.#credit + bytes / usualBytesPerPiece - pieces)
    return this.#credit >= 0 || this.#refill()
  }

  /** Adds work to this turn that is never a flood; a step is the work of one piece. */
  spend(steps: number): void {
    const now = currentTurn()
    if (this.#turn !== now) this.#steps = 0
    this.#turn = now
    this.#steps += steps
  }

  /** Whether this turn's share is used up: put the rest back and continue with `later`. */
  get isSpent(): boolean {
    return this.#steps >= maxTurnSteps && this.#turn === currentTurn()
  }

  /** Of all connections that have used up their share, one continues per turn. */
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
const maxPendingBytes = 64 << 10

/** Joins small pieces into one write per turn, however they were framed. */
export class Coalescer {
  #pieces: Buffer[] = []
  #bytes = 0
  readonly #deliver: (pieces: Buffer[], bytes: number) => void
  readonly #endTurn = () => this.flush()

  constructor(deliver: (pieces: Buffer[], bytes: number) => void) {
    this.#deliver = deliver
  }

  add(piece: Buffer): void {
    if (piece.length === 0) return
    const isFirst = this.#pieces.length === 0
    this.#pieces.push(piece)
    this.#bytes += piece.length
    if (this.#bytes >= (isFirst ? largeBytes : maxPendingBytes)) this.flush()
    else if (isFirst) setImmediate(this.#endTurn)
  }

  flush(): void {
    if (this.#pieces.length === 0) return
    const [pieces, bytes] = [this.#pieces, this.#bytes]
    this.drop()
    this.#deliver(pieces, bytes)
  }

  drop(): void {
    this.#pieces = []
    this.#bytes = 0
  }
}
