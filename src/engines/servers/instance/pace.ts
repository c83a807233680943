// Limits reads from a server or a visitor to a share of the event loop and to the speed of the other side.
import type { Duplex } from 'node:stream'
import { Budget } from '../../../platform/http/budget.ts'

// This many bytes in tiny chunks or frames cost as much as one callback of a parser.
const stepBytes = 512
// Each read also causes a write to the other side, and a TLS read may be a single byte.
const readSteps = 8

export class Pace {
  readonly #socket: Duplex
  readonly #budget = new Budget()
  #isPaused = false
  #isSpent = false

  constructor(socket: Duplex) {
    this.#socket = socket
  }

  /** Whether it waits for the other side. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Stops reading until the other side has drained. */
  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  /** Doesn't resume if the turn's share is spent: a fast peer drains within the same turn. */
  resume(): void {
    this.#isPaused = false
    if (!this.#isSpent) this.#socket.resume()
  }

  /** Called after each read, because a peer may fill every read with tiny pieces, with the next read already waiting. */
  spend(bytes: number): void {
    this.#budget.spend(readSteps + bytes / stepBytes)
    if (this.#isSpent || !this.#budget.isSpent) return
    this.#isSpent = true
    this.#socket.pause()
    this.#budget.later(() => {
      this.#isSpent = false
      if (!this.#isPaused) this.#socket.resume()
    })
  }
}
