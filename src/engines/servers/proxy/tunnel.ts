// Proxies an upgrade request to a server; after its 101 the bytes of both sides are passed on unchanged.
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AnswerHead } from '../instance/answer-head.ts'
import { type Connection, Stalled } from '../instance/connection.ts'
import { type FailureStatus, NotReached, sendFailureTo } from '../instance/failures.ts'
import type { Upstream } from '../instance/instance.ts'
import { Pace } from '../instance/pace.ts'
import { writePart } from '../instance/parts.ts'
import { type Frames, followFrames, goingAwayFrame } from './frames.ts'
import { headersForServer, headersForVisitor, requestHead } from './headers.ts'

// TCP keep-alive finds visitors whose network is gone.
const keepAliveMs = 60_000
/**
 * `answered` is called with the status of the answer. `closeMs`: how long a visitor or a server has to take the end of a
 * WebSocket.
 */
export type TunnelOptions = {
  stallMs: number
  closeMs?: number
  again(error: Error): boolean
  answered?(status: number): void
}

export function tunnel(
  { request, socket, head: first }: { request: IncomingMessage; socket: Duplex; head: Buffer },
  instance: Upstream,
  { stallMs, closeMs = 2_000, again, answered: tell = () => {} }: TunnelOptions,
): void {
  if (socket.destroyed) return
  const head = requestHead(request.method!, headersForServer(request, 'upgrade'))
  if (head === null) return void fail(502)
  const pace = new Pace(socket)
  let connection: Connection | null = null
  let answered = false
  let frames: Frames | null = null
  let closing = false
  const done = instance.begin('tunnel', () => {
    done()
    if (frames) close()
    else socket.destroy()
    connection?.destroy()
  })
  const leave = () => {
    // What was sent before the close is still delivered.
    if (answered && connection) endWithin(connection.socket, closeMs)
    else connection?.destroy()
    done()
  }
  socket.once('close', leave)
  socket.on('error', () => socket.destroy())
  instance.pool.open().then(exchange, refused)

  function exchange(opened: Connection): void {
    if (socket.destroyed) return void opened.destroy()
    connection = opened
    opened.send(head!, { head: answer, part, failed }, { method: request.method!, stallMs, upgrade: true })
  }

  function fail(status: FailureStatus): void {
    tell(status)
    sendFailureTo(socket, status)
  }

  /** Nothing of the request was sent. */
  function refused(error: Error): void {
    if (socket.destroyed) return
    const isAway = error instanceof NotReached
    if (isAway && again(error)) {
      socket.off('close', leave)
      return void done()
    }
    fail(isAway ? error.status : 502)
  }

  function answer(answer: AnswerHead): void {
    answered = true
    tell(answer.status)
    if (answer.status === 101) return void join(answer)
    // The server answers with plain HTTP, for example to refuse the visitor.
    const headers = headersForVisitor(answer.headers, answer.connection, answer.status)
    socket.write(headOf(answer, [...headers, 'connection', 'close']), 'latin1')
  }

  function join(answer: AnswerHead): void {
    const server = connection!.socket
    for (const one of [socket, server]) {
      if (!(one instanceof Socket)) continue
      one.setTimeout(0)
      one.setNoDelay(true)
      one.setKeepAlive(true, keepAliveMs)
    }
    socket.write(headOf(answer, answer.headers), 'latin1')
    frames = followFrames()
    if (first.length > 0) server.write(first)
    socket.on('data', (octets: Buffer) => {
      if (!server.destroyed && !server.write(octets) && !pace.isPaused) {
        pace.pause()
        server.once('drain', () => pace.resume())
      }
      pace.spend(octets.length)
    })
    // It may have ended while the server took its time.
    if (socket.readableEnded) server.end()
    else socket.on('end', () => server.end())
  }

  function part(part: Buffer | null, last: boolean): void {
    if (closing) return
    if (part) frames?.pass(part)
    if (part && !socket.destroyed && !writePart(socket, part) && !last) {
      const server = connection!.pace
      if (server.isPaused) return
      server.pause()
      socket.once('drain', () => server.resume())
    }
    if (last) close()
  }

  function failed(error: Error): void {
    if (answered) return void close()
    answered = true
    fail(error instanceof Stalled ? 504 : 502)
  }

  /** After what was written. A WebSocket whose server has not closed it is told that the server goes away. */
  function close(): void {
    if (closing) return
    closing = true
    if (!frames?.isBetween || socket.readableEnded) {
      // A server that refuses the upgrade may send a page, which a visitor reads as slowly as any other.
      return void endWithin(socket, frames ? closeMs : stallMs)
    }
    // Destroyed with octets of the visitor unread, the socket would be reset, and the frame lost with it.
    socket.end(goingAwayFrame)
    pace.resume()
    destroyAfter(socket, closeMs)
    socket.once('end', () => socket.destroy())
  }
}

/** After what was written, if it is taken in time: who reads nothing would hold the connection and all that is queued. */
function endWithin(socket: Duplex, maxMs: number): void {
  destroyAfter(socket, maxMs)
  if (socket instanceof Socket) socket.destroySoon()
  else socket.end()
}

function destroyAfter(socket: Duplex, ms: number): void {
  if (socket.destroyed) return
  const late = setTimeout(() => socket.destroy(), ms)
  socket.once('close', () => clearTimeout(late))
}

function headOf({ status, reason }: AnswerHead, headers: readonly string[]): string {
  let head = `HTTP/1.1 ${status} ${reason}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  return `${head}\r\n`
}
