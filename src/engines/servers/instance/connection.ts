// One HTTP/1.1 connection to a server, for one request at a time. A server may say anything at any time.
import type { Socket } from 'node:net'
import { type AnswerHead, MalformedAnswer, parseHead } from './answer-head.ts'
import { type Chunked, createChunked } from './chunked.ts'
import { Pace } from './pace.ts'

/** Gets the answer to a request. A part is valid only until `part` returns: the next one is read into the same memory. After its last part, or `failed`, it gets nothing more. */
export type Receiver = {
  /** Answers before the final one (1xx) are dropped. `alone`: nothing of the body came with the head. */
  head(head: AnswerHead, alone: boolean): void
  /** A part of the body; null if only its end is to be told. */
  part(part: Buffer | null, last: boolean): void
  failed(error: Error): void
}

type SendOptions = { method: string; body?: boolean; upgrade?: boolean; stallMs: number }

/** Neither side has sent anything for too long. */
export class Stalled extends Error {
  override name = 'Stalled'
}

// The same limit as Node's.
const maxHeadLength = 16 << 10
// Answers before the final one (1xx). A server that works for long may say so now and then.
const maxInformational = 100
const maxInformationalBytes = 64 << 10

export class Connection {
  readonly socket: Socket
  /** Who can't take more of the answer pauses it. */
  readonly pace: Pace
  /** `performance.now()` of the end of its last answer. */
  idleSinceMs = 0
  /** How long the server promised then to keep it. */
  promisedMs = 0
  /** Whether anything of the answer to the current request has come. */
  answering = false
  #requests = 0
  #receiver: Receiver | null = null
  /** A body is being sent. */
  #sending = false
  #reading: 'head' | 'length' | 'chunks' | 'rest' = 'head'
  #head: AnswerHead | null = null
  #held: Buffer | null = null
  #informational = 0
  #informationalBytes = 0
  #left = 0
  #chunked: Chunked | null = null
  #bodiless = false
  #upgrade = false
  readonly #onIdle: (connection: Connection) => void

  constructor(socket: Socket, onIdle: (connection: Connection) => void) {
    this.socket = socket
    this.pace = new Pace(socket)
    this.#onIdle = onIdle
    socket.on('data', (octets: Buffer) => this.heard(octets))
    socket.on('end', () => this.#ended())
    socket.on('timeout', () => this.#fail(new Stalled('the server took too long')))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  /** Whether it had a request before the current one. */
  get reused(): boolean {
    return this.#requests > 1
  }

  /** `body`: `write` and `sent` follow. `upgrade`: after a 101, the body is whatever the server sends. */
  send(head: string, receiver: Receiver, options: SendOptions) {
    const { socket } = this
    this.#requests++
    this.#receiver = receiver
    this.#reading = 'head'
    this.#informational = this.#informationalBytes = 0
    const { method, body = false, upgrade = false, stallMs } = options
    this.#bodiless = method === 'HEAD'
    // Such a connection gets no other request, even if the server refuses: what comes may belong to the upgrade.
    this.#sending = body || upgrade
    this.#upgrade = upgrade
    this.answering = false
    if (socket.timeout !== stallMs) socket.setTimeout(stallMs)
    if (body) {
      // What of the body is there already goes into the same packet.
      socket.cork()
      process.nextTick(() => socket.uncork())
    }
    socket.write(head, 'latin1')
  }

  /** False: wait for `drain` of the socket. */
  write(part: Buffer | string): boolean {
    return this.socket.destroyed || this.socket.write(part, 'latin1')
  }

  /** The whole body is sent. */
  sent(): void {
    this.#sending = false
  }

  /** Ends it without a word to the receiver. */
  destroy(): void {
    this.#receiver = null
    this.socket.destroy()
  }

  /** For what was read without the event `data`; it must not be told of anything twice. */
  heard(octets: Buffer): void {
    // An answer to nothing: it must not be taken for that to the next request.
    if (this.#receiver === null) return void this.socket.destroy()
    this.answering = true
    try {
      if (this.#reading === 'head') this.#readHead(octets)
      else this.#readBody(octets)
    } catch (error) {
      this.#fail(error as Error)
    }
    // After an upgrade, each frame is looked at.
    const hasPieces = this.#reading === 'chunks' || (this.#reading === 'rest' && this.#upgrade)
    if (hasPieces && this.#receiver) this.pace.spend(octets.length)
  }

  #readHead(octets: Buffer): void {
    let searched = 0
    if (this.#held) {
      // The end may be in both.
      searched = Math.max(0, this.#held.length - 3)
      octets = Buffer.concat([this.#held, octets])
    }
    this.#held = null
    for (;;) {
      const end = octets.indexOf('\r\n\r\n', searched)
      searched = 0
      if ((end < 0 ? octets.length : end) > maxHeadLength)
        throw new MalformedAnswer('the head of the answer is too long')
      if (end < 0) {
        this.#held = Buffer.from(octets)
        return
      }
      const head = parseHead(octets.toString('latin1', 0, end + 2))
      octets = octets.subarray(end + 4)
      if (head.status >= 200 || head.status === 101) return void this.#answer(head, octets)
      this.#informational++
      this.#informationalBytes += end
      if (this.#informational > maxInformational || this.#informationalBytes > maxInformationalBytes) {
        throw new MalformedAnswer('the server announces its answer too often')
      }
      if (octets.length === 0) return
    }
  }

  /** `rest`: what came after its head. */
  #answer(head: AnswerHead, rest: Buffer): void {
    const switches = head.status === 101
    if (switches && !this.#upgrade) throw new MalformedAnswer('the server changes a protocol that nobody asked it to')
    this.#head = head
    if (switches) this.#reading = 'rest'
    else if (this.#bodiless || head.status === 204 || head.status === 304) {
      this.#reading = 'length'
      this.#left = 0
    } else if (head.chunked) {
      this.#reading = 'chunks'
      this.#chunked = createChunked()
    } else if (head.length !== null) {
      this.#reading = 'length'
      this.#left = head.length
    } else this.#reading = 'rest'
    const empty = this.#reading === 'length' && this.#left === 0
    this.#receiver!.head(head, rest.length === 0 && !empty)
    if (empty) this.#finish(null, rest.length > 0)
    else if (rest.length > 0 && this.#receiver) this.#readBody(rest)
  }

  #readBody(octets: Buffer): void {
    if (this.#reading === 'length') {
      const part = octets.length > this.#left ? octets.subarray(0, this.#left) : octets
      this.#left -= part.length
      if (this.#left === 0) this.#finish(part, part.length < octets.length)
      else this.#receiver!.part(part, false)
    } else if (this.#reading === 'chunks') {
      let part: Buffer | null = null
      const end = this.#chunked!.read(octets, (all) => {
        part = all
      })
      if (end >= 0) this.#finish(part, end < octets.length)
      else if (part) this.#receiver!.part(part, false)
    } else this.#receiver!.part(octets, false)
  }

  /** `more`: something came after the end of the answer. */
  #finish(part: Buffer | null, more: boolean): void {
    const receiver = this.#receiver!
    const { socket } = this
    const { keepAlive, promisedMs } = this.#head!
    this.#receiver = null
    this.#chunked = null
    const reusable = keepAlive && this.#reading !== 'rest' && !more && !this.#sending && !socket.destroyed
    if (!reusable) socket.destroy()
    receiver.part(part, true)
    if (!reusable || socket.destroyed) return
    if (this.pace.isPaused) this.pace.resume()
    this.idleSinceMs = performance.now()
    this.promisedMs = promisedMs
    this.#onIdle(this)
  }

  #ended(): void {
    if (this.#receiver && this.#reading === 'rest') this.#finish(null, false)
    else this.#fail(new Error('the server closed the connection'))
  }

  #fail(error: Error): void {
    const receiver = this.#receiver
    this.destroy()
    receiver?.failed(error)
  }
}
