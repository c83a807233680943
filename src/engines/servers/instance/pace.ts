// Reads from a server or a visitor no faster than a share of each turn of the event loop, and than the other side takes it.
import type { Duplex } from 'node:stream'
import { Budget } from '../../../platform/http/budget.ts'

// Octets of tiny chunks or frames that take as long as one callback of a parser.
const stepBytes = 512
// Each read is also written to the other side. A read of TLS may be a record of a single octet.
const readSteps = 8

export class Pace {
  readonly #socket: Duplex
  readonly #budget = new Budget()
  #isPaused = false
  #isSpent = false

  constructor(socket: Duplex) {
    this.#socket = socket
  }

  /** Whether the other side is slow. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Until the other side has taken what it has. */
  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  /** A fast side drains within the same turn, so that alone doesn't go on with a read that has to wait for the next one. */
  resume(): void {
    this.#isPaused = false
    if (!this.#isSpent) this.#socket.resume()
  }

  /** After each read. A peer may fill every read with tiny pieces, and the system has the next read ready. */
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
