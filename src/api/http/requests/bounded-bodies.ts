// Request bodies: never invited if they will be refused, never read in absurdly small pieces, never drained at any
// cost.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Fault } from '../../../platform/errors.ts'
import { CountedRequest, limitRequestCosts } from '../../../platform/http/request-intake.ts'

/** A request that abandons its body if that arrives in too many tiny chunks. */
export class BoundedMessage extends CountedRequest {
  /** The response of a client that waits for 100 Continue before it sends the body. */
  invitation: ServerResponse | null = null
  #isOver = false

  override push(chunk: Buffer | null): boolean {
    // The parser may still deliver the rest of its slice.
    return !this.#isOver && super.push(chunk)
  }

  override refuseFlood(): boolean {
    this.#isOver = true
    this.destroy(new Fault('invalid_request', 'The chunks of the body are too small. Send larger chunks.'))
    return true
  }

  /** Called when a handler starts to read, and after the response if none did. */
  override _read(size: number): void {
    const { invitation } = this
    this.invitation = null
    if (invitation && !invitation.headersSent) invitation.writeContinue()
    super._read(size)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#isOver) return void super._destroy(error, done)
    // The connection stays open for the response. Without a listener, the error waits for the reader.
    done(this.listenerCount('error') > 0 ? error : null)
  }
}

// Smaller bodies are read to the end, because that keeps the connection alive.
const maxUnreadBytes = 16 << 10

// A client reads the response only after it has sent its body, and loses it if the connection is reset before.
const lingerMs = 2_000
const maxLingerBytes = 1 << 20

function isLarge({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxUnreadBytes
}

/** Closes the connection gently, where Node would reset it. Data that still arrives no longer reaches the parser. */
function linger(socket: Socket): void {
  // Adding a listener makes Node detach its parser.
  socket.on('data', () => {})
  socket.removeAllListeners('data')
  let left = maxLingerBytes
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) socket.destroy()
  })
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end()
  socket.resume()
}

/** A response sent before a large body was read closes the connection. */
function closeUnlessRead(request: IncomingMessage, response: ServerResponse): void {
  if (!isLarge(request)) return
  const { socket } = request
  const { shouldKeepAlive } = response
  const { destroySoon } = socket
  response.shouldKeepAlive = false
  socket.destroySoon = () => linger(socket)
  request.once('end', () => {
    response.shouldKeepAlive = shouldKeepAlive
    socket.destroySoon = destroySoon
  })
}

/** `event` is the server's event for new connections. */
export function boundBodies(server: Server, event: 'connection' | 'secureConnection'): void {
  server.prependListener('request', closeUnlessRead)
  limitRequestCosts(server, event)
  server.on('checkContinue', (request, response) => {
    ;(request as BoundedMessage).invitation = response
    server.emit('request', request, response)
  })
}
