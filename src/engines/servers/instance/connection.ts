// An HTTP/1.1 connection to a server, for one request at a time. The server is untrusted: it may send anything anytime.
import type { Socket } from 'node:net'
import { type ChunkedDecoder, createChunkedDecoder } from './chunked.ts'
import { Pace } from './pace.ts'
import { MalformedResponse, parseHead, type ResponseHead } from './response-head.ts'

/**
 * Receives the response to a request. A part is valid only until `part` returns, because the next one is read into the
 * same memory. After the last part or `failed`, nothing follows.
 */
export type Receiver = {
  /** Informational responses (1xx) are dropped. `alone`: no part of the body arrived with the head. */
  head(head: ResponseHead, alone: boolean): void
  /** A part of the body; null if there is only its end to report. */
  part(part: Buffer | null, last: boolean): void
  failed(error: Error): void
}

type SendOptions = { method: string; body?: boolean; upgrade?: boolean; stallMs: number }

/** Neither side has sent anything within the timeout. */
export class Stalled extends Error {
  override name = 'Stalled'
}

// The same limit as Node's.
const maxHeadLength = 16 << 10
// Informational responses (1xx), which slow servers may send now and then.
const maxInformational = 100
const maxInformationalBytes = 64 << 10

export class Connection {
  readonly socket: Socket
  /** Paused while the visitor can't take more of the response. */
  readonly pace: Pace
  /** `performance.now()` at the end of the last response. */
  idleSinceMs = 0
  /** How long the server then promised to keep the connection open. */
  keepAliveMs = 0
  /** Whether any part of the current response has arrived. */
  hasResponse = false
  #requests = 0
  #receiver: Receiver | null = null
  /** Whether a request body is being sent. */
  #sending = false
  #reading: 'head' | 'length' | 'chunks' | 'rest' = 'head'
  #head: ResponseHead | null = null
  #partialHead: Buffer | null = null
  #informational = 0
  #informationalBytes = 0
  #remaining = 0
  #chunked: ChunkedDecoder | null = null
  #bodiless = false
  #upgrade = false
  readonly #onIdle: (connection: Connection) => void

  constructor(socket: Socket, onIdle: (connection: Connection) => void) {
    this.socket = socket
    this.pace = new Pace(socket)
    this.#onIdle = onIdle
    socket.on('data', (octets: Buffer) => this.receive(octets))
    socket.on('end', () => this.#onEnd())
    socket.on('timeout', () => this.#fail(new Stalled('the server took too long')))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  /** Whether the current request is not the first one. */
  get reused(): boolean {
    return this.#requests > 1
  }

  /** `body`: calls of `write` and `endBody` follow. `upgrade`: after a 101, everything the server sends is the body. */
  send(head: string, receiver: Receiver, options: SendOptions) {
    const { socket } = this
    this.#requests++
    this.#receiver = receiver
    this.#reading = 'head'
    this.#informational = this.#informationalBytes = 0
    const { method, body = false, upgrade = false, stallMs } = options
    this.#bodiless = method === 'HEAD'
    // A connection with an upgrade is never reused, even if the server refuses: later bytes may belong to the upgrade.
    this.#sending = body || upgrade
    this.#upgrade = upgrade
    this.hasResponse = false
    if (socket.timeout !== stallMs) socket.setTimeout(stallMs)
    if (body) {
      // Sends the head and the first part of the body in one packet.
      socket.cork()
      process.nextTick(() => socket.uncork())
    }
    socket.write(head, 'latin1')
  }

  /** Returns false if the caller should wait for the socket's `drain`. */
  write(part: Buffer | string): boolean {
    return this.socket.destroyed || this.socket.write(part, 'latin1')
  }

  /** Called after the whole body was written. */
  endBody(): void {
    this.#sending = false
  }

  /** Destroys the connection without notifying the receiver. */
  destroy(): void {
    this.#receiver = null
    this.socket.destroy()
  }

  /** Handles bytes from the socket. Called directly if they are read without `data` events. */
  receive(octets: Buffer): void {
    // Unsolicited bytes must not become the response to the next request.
    if (this.#receiver === null) return void this.socket.destroy()
    this.hasResponse = true
    try {
      if (this.#reading === 'head') this.#readHead(octets)
      else this.#readBody(octets)
    } catch (error) {
      this.#fail(error as Error)
    }
    // After an upgrade, the frames are parsed.
    const hasPieces = this.#reading === 'chunks' || (this.#reading === 'rest' && this.#upgrade)
    if (hasPieces && this.#receiver) this.pace.spend(octets.length)
  }

  #readHead(octets: Buffer): void {
    let searched = 0
    if (this.#partialHead) {
      // The end of the head may span both buffers.
      searched = Math.max(0, this.#partialHead.length - 3)
      octets = Buffer.concat([this.#partialHead, octets])
    }
    this.#partialHead = null
    for (;;) {
      const end = octets.indexOf('\r\n\r\n', searched)
      searched = 0
      if ((end < 0 ? octets.length : end) > maxHeadLength)
        throw new MalformedResponse('the head of the answer is too long')
      if (end < 0) {
        this.#partialHead = Buffer.from(octets)
        return
      }
      const head = parseHead(octets.toString('latin1', 0, end + 2))
      octets = octets.subarray(end + 4)
      if (head.status >= 200 || head.status === 101) return void this.#onHead(head, octets)
      this.#informational++
      this.#informationalBytes += end
      if (this.#informational > maxInformational || this.#informationalBytes > maxInformationalBytes) {
        throw new MalformedResponse('the server announces its answer too often')
      }
      if (octets.length === 0) return
    }
  }

  /** `rest` is what followed the head. */
  #onHead(head: ResponseHead, rest: Buffer): void {
    const isSwitching = head.status === 101
    if (isSwitching && !this.#upgrade) throw new MalformedResponse('the server switches protocols unasked')
    this.#head = head
    if (isSwitching) this.#reading = 'rest'
    else if (this.#bodiless || head.status === 204 || head.status === 304) {
      this.#reading = 'length'
      this.#remaining = 0
    } else if (head.chunked) {
      this.#reading = 'chunks'
      this.#chunked = createChunkedDecoder()
    } else if (head.length !== null) {
      this.#reading = 'length'
      this.#remaining = head.length
    } else this.#reading = 'rest'
    const empty = this.#reading === 'length' && this.#remaining === 0
    this.#receiver!.head(head, rest.length === 0 && !empty)
    if (empty) this.#finish(null, rest.length > 0)
    else if (rest.length > 0 && this.#receiver) this.#readBody(rest)
  }

  #readBody(octets: Buffer): void {
    if (this.#reading === 'length') {
      const part = octets.length > this.#remaining ? octets.subarray(0, this.#remaining) : octets
      this.#remaining -= part.length
      if (this.#remaining === 0) this.#finish(part, part.length < octets.length)
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

  /** `hasMore`: bytes followed the end of the response. */
  #finish(part: Buffer | null, hasMore: boolean): void {
    const receiver = this.#receiver!
    const { socket } = this
    const { keepAlive, keepAliveMs } = this.#head!
    this.#receiver = null
    this.#chunked = null
    const reusable = keepAlive && this.#reading !== 'rest' && !hasMore && !this.#sending && !socket.destroyed
    if (!reusable) socket.destroy()
    receiver.part(part, true)
    if (!reusable || socket.destroyed) return
    if (this.pace.isPaused) this.pace.resume()
    this.idleSinceMs = performance.now()
    this.keepAliveMs = keepAliveMs
    this.#onIdle(this)
  }

  #onEnd(): void {
    if (this.#receiver && this.#reading === 'rest') this.#finish(null, false)
    else this.#fail(new Error('the server closed the connection'))
  }

  #fail(error: Error): void {
    const receiver = this.#receiver
    this.destroy()
    receiver?.failed(error)
  }
}
