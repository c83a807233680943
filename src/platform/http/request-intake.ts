// Limits what a visitor's bytes cost in Node's HTTP parser, which calls back for every chunk and every request.
import { IncomingMessage, type ServerResponse } from 'node:http'
import type { Server, Socket } from 'node:net'
import { Budget } from './budget.ts'
import { endWithResponse } from './final-response.ts'
import { createIncompleteRequests, type IncompleteRequests } from './incomplete-requests.ts'

/** The steps of a request apart from its body: its objects, its route, its response. */
export const requestSteps = 32
// The next bytes could be anything: 1 KiB holds at most 170 chunks, or 30 requests.
const sliceBytes = 1 << 10
// The slice size after a slice with this many bytes per step, unless a request may end in this slice: more may follow.
const largeSliceBytes = 16 << 10
const endOfHead = '\r\n\r\n'
const minBytesPerStep = 64
// For requests that wait for their turn. No honest client sends many before it has a response.
const maxQueuedBytes = 16 << 10

const intake = Symbol('intake')
type HttpSocket = Socket & { [intake]?: Intake; parser?: unknown; _httpMessage?: { headersSent: boolean } | null }

/** For servers whose connections go through `limitRequestCosts`. */
export class CountedRequest extends IncomingMessage {
  // The socket may be gone when the parser delivers its last data.
  readonly #intake: Intake | undefined

  constructor(socket: Socket) {
    super(socket)
    this.#intake = (socket as HttpSocket)[intake]
    this.#intake?.begin(this)
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk !== null) this.#intake?.count(chunk.length)
    return super.push(chunk, encoding)
  }

  /** Calls `work` when it is this request's turn, or never. */
  onTurn(response: ServerResponse, work: () => void): void {
    if (this.#intake) this.#intake.handle(response, work)
    else work()
  }

  /** Called on a flood of tiny pieces. Returns true if the request responds itself; the rest isn't read. */
  refuseFlood(): boolean {
    return false
  }

  /** Node discards the rest of a body that nobody reads. Its own implementation would bypass the counting. */
  _dump(): void {
    this.removeAllListeners('data')
    this.resume()
  }
}

/** `event` is the server's event for new connections. Call it before others replace the event's listeners. */
export function limitRequestCosts(server: Server, event: 'connection' | 'secureConnection'): void {
  const listeners = server.listeners(event)
  const incomplete = createIncompleteRequests()
  server.removeAllListeners(event)
  server.on(event, (socket: HttpSocket) => {
    for (const listener of listeners) listener.call(server, socket)
    // HTTP/2 has no such parser.
    if (socket.parser) socket[intake] = new Intake(socket, incomplete)
  })
  const handlers = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const handle = () => {
      for (const handler of handlers) handler.call(server, request, response)
    }
    if (request instanceof CountedRequest) request.onTurn(response, handle)
    else handle()
  })
}

type Feed = (octets: Buffer) => void

class Intake {
  readonly #socket: HttpSocket
  readonly #incomplete: IncompleteRequests
  readonly #feed: Feed
  readonly #budget = new Budget()
  /** The request that was parsed last, and how much of its body. */
  #request: CountedRequest | null = null
  #bodyBytes = 0
  /** Whether a request is being handled, or the next one waits for its turn. */
  #isBusy = false
  readonly #next: (() => void)[] = []
  /** Data that came later. It isn't left in the socket, which would no longer report that the client is gone. */
  #queued: Buffer = Buffer.alloc(0)
  #isIncomplete = false
  #isWaiting = false
  #isFlood = false
  #steps = 0
  #sliceBytes = sliceBytes

  constructor(socket: HttpSocket, incomplete: IncompleteRequests) {
    this.#socket = socket
    this.#incomplete = incomplete
    this.#feed = socket.listeners('data').at(-1) as Feed
    // Node's parser no longer reads from the socket once there is another reader.
    socket.on('data', this.#onData)
    socket.off('data', this.#feed)
    socket.once('close', () => incomplete.delete(socket))
  }

  begin(request: CountedRequest): void {
    this.#request = request
    this.#bodyBytes = 0
    this.#isIncomplete = false
    this.#steps += requestSteps
    this.#budget.spend(requestSteps)
  }

  /** Handles one request at a time. Requests that were queued start in separate turns of the event loop. */
  handle(response: ServerResponse, work: () => void): void {
    const start = () => {
      response.once('close', this.#onResponse)
      work()
    }
    if (this.#isBusy) return void this.#next.push(start)
    this.#isBusy = true
    start()
  }

  readonly #onResponse = (): void => {
    const start = this.#next.shift()
    if (!start && this.#queued.length === 0) {
      this.#isBusy = false
      return
    }
    this.#budget.later(() => {
      // That was the last response on this connection.
      if (!this.#socket.writable) return
      if (start) return start()
      this.#isBusy = false
      const queued = this.#queued
      this.#queued = Buffer.alloc(0)
      this.#socket.resume()
      this.#onData(queued)
    })
  }

  count(bytes: number): void {
    this.#steps++
    this.#bodyBytes += bytes
    if (!this.#budget.count(1, 0)) this.#isFlood = true
  }

  readonly #onData = (octets: Buffer): void => {
    const socket = this.#socket
    // A reader of the body has resumed the socket too early.
    if (this.#isWaiting) {
      socket.pause()
      return void socket.unshift(octets)
    }
    for (let at = 0; at < octets.length; ) {
      if (this.#isAhead) {
        this.#queue(octets.subarray(at))
        break
      }
      if (this.#request?.complete ?? true) this.#isIncomplete = true
      const slice = this.#sliceOf(octets.subarray(at))
      at += slice.length
      this.#steps = 0
      // Data that is put back comes again, so bytes count when they are fed to the parser.
      this.#isFlood ||= !this.#budget.count(1, slice.length)
      this.#feed.call(socket, slice)
      this.#sliceBytes = this.#steps * minBytesPerStep <= slice.length ? largeSliceBytes : sliceBytes
      if (socket.destroyed) return
      if (this.#isFlood) return void this.#refuse()
      const rest = octets.subarray(at)
      // The connection switched to another protocol.
      if (!socket.parser) return void this.#detach(rest)
      if (this.#budget.isSpent && !socket.isPaused()) return void this.#wait(rest)
      // The reader of the body is full; the rest comes again with `resume`.
      if (rest.length > 0 && socket.isPaused()) {
        socket.unshift(rest)
        break
      }
    }
    if (this.#isIncomplete) this.#incomplete.add(socket)
    else this.#incomplete.delete(socket)
  }

  /** Whether the next data belongs to a request whose turn hasn't come. */
  get #isAhead(): boolean {
    return this.#next.length > 0 || (this.#isBusy && this.#request?.complete === true)
  }

  #sliceOf(octets: Buffer): Buffer {
    const request = this.#request
    const left = request?.complete === false ? Number(request.headers['content-length']) - this.#bodyBytes : 0
    // For a body of known length, Node calls back once for all data.
    if (left > 0) return octets.subarray(0, left)
    const slice = octets.subarray(0, this.#sliceBytes)
    return slice.length > sliceBytes && slice.includes(endOfHead) ? slice.subarray(0, sliceBytes) : slice
  }

  #queue(octets: Buffer): void {
    this.#queued = this.#queued.length > 0 ? Buffer.concat([this.#queued, octets]) : octets
    if (this.#queued.length > maxQueuedBytes) this.#socket.pause()
  }

  #wait(rest: Buffer): void {
    const socket = this.#socket
    this.#isWaiting = true
    socket.pause()
    if (rest.length > 0) socket.unshift(rest)
    this.#budget.later(() => {
      this.#isWaiting = false
      socket.resume()
    })
  }

  #detach(rest: Buffer): void {
    this.#socket.off('data', this.#onData)
    if (rest.length > 0) this.#socket.unshift(rest)
  }

  #refuse(): void {
    const socket = this.#socket
    socket.off('data', this.#onData)
    if (socket._httpMessage?.headersSent) return void socket.destroy()
    if (this.#request?.complete === false && this.#request.refuseFlood()) return
    endWithResponse(socket, 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  }
}
