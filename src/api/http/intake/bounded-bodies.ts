// Bodies as they arrive: nobody asks for one that will be refused, reads one in absurdly small pieces, or drains one.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Fault } from '../../../platform/errors.ts'
import { CountedRequest, limitRequestCosts } from '../../../platform/http/request-intake.ts'

/** A request that gives its body up when that comes in too many tiny pieces. */
export class BoundedMessage extends CountedRequest {
  /** The response of a client that sends its body only when told to. */
  invitation: ServerResponse | null = null
  #isOver = false

  override push(chunk: Buffer | null): boolean {
    // What is left of the slice that the parser is at.
    return !this.#isOver && super.push(chunk)
  }

  override refuseFlood(): boolean {
    this.#isOver = true
    this.destroy(new Fault('invalid_request', 'The chunks of the body are too small. Send larger chunks.'))
    return true
  }

  /** Reached when a handler begins to read, and after the response if none has. */
  override _read(size: number): void {
    const { invitation } = this
    this.invitation = null
    if (invitation && !invitation.headersSent) invitation.writeContinue()
    super._read(size)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#isOver) return void super._destroy(error, done)
    // The connection stays for the response. Without a listener, the error waits for the one who reads.
    done(this.listenerCount('error') > 0 ? error : null)
  }
}

// So little is read to its end, because the connection is worth more.
const maxUnreadBytes = 16 << 10

// A client that still sends reads the response only afterwards, and loses it if the connection is reset before.
const lingerMs = 2_000
const maxLingerBytes = 1 << 20

function isLarge({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxUnreadBytes
}

/** Closes the connection in place of Node, which would reset it; what still comes no longer reaches the parser. */
function linger(socket: Socket): void {
  // Node takes its parser off a connection that gets a listener.
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

/** Answers that come before a large body was read close the connection. */
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
