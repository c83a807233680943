// Bounds what the bytes of a visitor cost in Node's HTTP parser, which calls back for every chunk and every request.
import { IncomingMessage, type ServerResponse } from 'node:http'
import type { Server, Socket } from 'node:net'
import { Budget } from './budget.ts'
import { createHalfSent, type HalfSent } from './half-sent.ts'
import { endWithLastWords } from './last-words.ts'

/** Steps of a request besides those of its body: its objects, its route, its answer. */
export const requestSteps = 32
// Nothing is known of the next bytes: 1 KiB holds at most 170 chunks, or 30 requests.
const sliceBytes = 1 << 10
// After a slice with this much for each step, unless a request may end in this one: others may follow it.
const calmSliceBytes = 16 << 10
const endOfHead = '\r\n\r\n'
const calmStepBytes = 64
// Of requests whose turn has not come. No honest client sends many before it has a response.
const maxHeldBytes = 16 << 10

const intake = Symbol('intake')
type Taken = Socket & { [intake]?: Intake; parser?: unknown; _httpMessage?: { headersSent: boolean } | null }

/** For servers whose connections `boundRequests` guards. */
export class CountedRequest extends IncomingMessage {
  // The socket may be gone when the parser hands over the last of what it has.
  readonly #intake: Intake | undefined

  constructor(socket: Socket) {
    super(socket)
    this.#intake = (socket as Taken)[intake]
    this.#intake?.begin(this)
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk !== null) this.#intake?.count(chunk.length)
    return super.push(chunk, encoding)
  }

  /** Calls `work` when it is this request's turn, or never. */
  whenDue(response: ServerResponse, work: () => void): void {
    if (this.#intake) this.#intake.handle(response, work)
    else work()
  }

  /** Told of a flood of tiny pieces; true: it answers itself, and what still comes is not read. */
  refuseFlood(): boolean {
    return false
  }

  /** Node drops the rest of a body that nobody reads; with its own way, uncounted. */
  _dump(): void {
    this.removeAllListeners('data')
    this.resume()
  }
}

/** `event` is the server's event for new connections. To be called before others take over its listeners. */
export function boundRequests(server: Server, event: 'connection' | 'secureConnection'): void {
  const accept = server.listeners(event)
  const halfSent = createHalfSent()
  server.removeAllListeners(event)
  server.on(event, (socket: Taken) => {
    for (const listener of accept) listener.call(server, socket)
    // HTTP/2 has no such parser.
    if (socket.parser) socket[intake] = new Intake(socket, halfSent)
  })
  const handlers = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const handle = () => {
      for (const handler of handlers) handler.call(server, request, response)
    }
    if (request instanceof CountedRequest) request.whenDue(response, handle)
    else handle()
  })
}

type Feed = (octets: Buffer) => void

class Intake {
  readonly #socket: Taken
  readonly #halfSent: HalfSent
  readonly #feed: Feed
  readonly #budget = new Budget()
  /** The latest that was parsed, and how much of its body. */
  #request: CountedRequest | null = null
  #bodyBytes = 0
  /** A request was handled whose response is not complete, or the next one waits for its turn. */
  #isBusy = false
  readonly #next: (() => void)[] = []
  /** What came after. It isn't left in the socket, which would no longer tell that the client is gone. */
  #held: Buffer = Buffer.alloc(0)
  #isHalfSent = false
  #isWaiting = false
  #isFlood = false
  #steps = 0
  #sliceBytes = sliceBytes

  constructor(socket: Taken, halfSent: HalfSent) {
    this.#socket = socket
    this.#halfSent = halfSent
    this.#feed = socket.listeners('data').at(-1) as Feed
    // Node's parser no longer reads from the socket once somebody else does.
    socket.on('data', this.#heard)
    socket.off('data', this.#feed)
    socket.once('close', () => halfSent.delete(socket))
  }

  begin(request: CountedRequest): void {
    this.#request = request
    this.#bodyBytes = 0
    this.#isHalfSent = false
    this.#steps += requestSteps
    this.#budget.spend(requestSteps)
  }

  /** Handles one request at a time; of all that came before it was their turn, one in each turn of the event loop. */
  handle(response: ServerResponse, work: () => void): void {
    const start = () => {
      response.once('close', this.#responded)
      work()
    }
    if (this.#isBusy) return void this.#next.push(start)
    this.#isBusy = true
    start()
  }

  readonly #responded = (): void => {
    const start = this.#next.shift()
    if (!start && this.#held.length === 0) {
      this.#isBusy = false
      return
    }
    this.#budget.later(() => {
      // That response was the last one.
      if (!this.#socket.writable) return
      if (start) return start()
      this.#isBusy = false
      const held = this.#held
      this.#held = Buffer.alloc(0)
      this.#socket.resume()
      this.#heard(held)
    })
  }

  count(bytes: number): void {
    this.#steps++
    this.#bodyBytes += bytes
    if (!this.#budget.count(1, 0)) this.#isFlood = true
  }

  readonly #heard = (octets: Buffer): void => {
    const socket = this.#socket
    // A reader of the body has resumed the socket before its turn.
    if (this.#isWaiting) {
      socket.pause()
      return void socket.unshift(octets)
    }
    for (let at = 0; at < octets.length; ) {
      if (this.#isAhead) {
        this.#hold(octets.subarray(at))
        break
      }
      if (this.#request?.complete ?? true) this.#isHalfSent = true
      const slice = this.#sliceOf(octets.subarray(at))
      at += slice.length
      this.#steps = 0
      // What is put back comes again, so bytes count when they are fed.
      this.#isFlood ||= !this.#budget.count(1, slice.length)
      this.#feed.call(socket, slice)
      this.#sliceBytes = this.#steps * calmStepBytes <= slice.length ? calmSliceBytes : sliceBytes
      if (socket.destroyed) return
      if (this.#isFlood) return void this.#refuse()
      const rest = octets.subarray(at)
      // Another protocol.
      if (!socket.parser) return void this.#leave(rest)
      if (this.#budget.isSpent && !socket.isPaused()) return void this.#wait(rest)
      // Whoever reads the body takes no more for now; the rest comes again with `resume`.
      if (rest.length > 0 && socket.isPaused()) {
        socket.unshift(rest)
        break
      }
    }
    if (this.#isHalfSent) this.#halfSent.add(socket)
    else this.#halfSent.delete(socket)
  }

  /** What comes next belongs to a request that is not due yet. */
  get #isAhead(): boolean {
    return this.#next.length > 0 || (this.#isBusy && this.#request?.complete === true)
  }

  #sliceOf(octets: Buffer): Buffer {
    const request = this.#request
    const left = request?.complete === false ? Number(request.headers['content-length']) - this.#bodyBytes : 0
    // Of a known length: Node calls back once for all there is.
    if (left > 0) return octets.subarray(0, left)
    const slice = octets.subarray(0, this.#sliceBytes)
    return slice.length > sliceBytes && slice.includes(endOfHead) ? slice.subarray(0, sliceBytes) : slice
  }

  #hold(octets: Buffer): void {
    this.#held = this.#held.length > 0 ? Buffer.concat([this.#held, octets]) : octets
    if (this.#held.length > maxHeldBytes) this.#socket.pause()
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

  #leave(rest: Buffer): void {
    this.#socket.off('data', this.#heard)
    if (rest.length > 0) this.#socket.unshift(rest)
  }

  #refuse(): void {
    const socket = this.#socket
    socket.off('data', this.#heard)
    if (socket._httpMessage?.headersSent) return void socket.destroy()
    if (this.#request?.complete === false && this.#request.refuseFlood()) return
    endWithLastWords(socket, 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  }
}
