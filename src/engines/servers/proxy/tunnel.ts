// Proxies an upgrade request to a server and, after its 101, the bytes of both sides.
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Connection, Stalled } from '../instance/connection.ts'
import { type FailureStatus, InstanceUnreachable, sendFailureToSocket } from '../instance/failures.ts'
import type { Upstream } from '../instance/instance.ts'
import { Pace } from '../instance/pace.ts'
import { writePart } from '../instance/parts.ts'
import type { ResponseHead } from '../instance/response-head.ts'
import { type Frames, followFrames, goingAwayFrame } from './frames.ts'
import { headersForServer, headersForVisitor, requestHead } from './headers.ts'

// TCP keep-alive detects visitors whose network is gone.
const keepAliveMs = 60_000
/** `answered` receives the status of the response. `closeMs` is how long either side may take to close a WebSocket. */
export type TunnelOptions = {
  stallMs: number
  closeMs?: number
  retry(error: Error): boolean
  answered?(status: number): void
}

export function tunnel(
  { request, socket, head: first }: { request: IncomingMessage; socket: Duplex; head: Buffer },
  instance: Upstream,
  { stallMs, closeMs = 2_000, retry, answered: onResponse = () => {} }: TunnelOptions,
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
  const onClose = () => {
    // Data sent before the close is still delivered.
    if (answered && connection) endWithin(connection.socket, closeMs)
    else connection?.destroy()
    done()
  }
  socket.once('close', onClose)
  socket.on('error', () => socket.destroy())
  instance.pool.open().then(exchange, onConnectError)

  function exchange(opened: Connection): void {
    if (socket.destroyed) return void opened.destroy()
    connection = opened
    opened.send(head!, { head: onHead, part: onPart, failed }, { method: request.method!, stallMs, upgrade: true })
  }

  function fail(status: FailureStatus): void {
    onResponse(status)
    sendFailureToSocket(socket, status)
  }

  /** No part of the request was sent. */
  function onConnectError(error: Error): void {
    if (socket.destroyed) return
    const isUnreachable = error instanceof InstanceUnreachable
    if (isUnreachable && retry(error)) {
      socket.off('close', onClose)
      return void done()
    }
    fail(isUnreachable ? error.status : 502)
  }

  function onHead(answer: ResponseHead): void {
    answered = true
    onResponse(answer.status)
    if (answer.status === 101) return void pipe(answer)
    // The server responds with plain HTTP, for example to refuse the visitor.
    const headers = headersForVisitor(answer.headers, answer.connection, answer.status)
    socket.write(headOf(answer, [...headers, 'connection', 'close']), 'latin1')
  }

  function pipe(answer: ResponseHead): void {
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
    // The visitor may have ended their side while the server was responding.
    if (socket.readableEnded) server.end()
    else socket.on('end', () => server.end())
  }

  function onPart(part: Buffer | null, last: boolean): void {
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

  /** Closes after pending writes. Sends a close frame (going away) if the server didn't. */
  function close(): void {
    if (closing) return
    closing = true
    if (!frames?.isBetween || socket.readableEnded) {
      // A server that refuses the upgrade may send a page, which the visitor may read slowly.
      return void endWithin(socket, frames ? closeMs : stallMs)
    }
    // Destroying the socket with unread data would reset it and lose the frame.
    socket.end(goingAwayFrame)
    pace.resume()
    destroyAfter(socket, closeMs)
    socket.once('end', () => socket.destroy())
  }
}

/** Flushes pending writes within `maxMs`: a peer that reads nothing would hold the connection and its queue forever. */
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

function headOf({ status, reason }: ResponseHead, headers: readonly string[]): string {
  let head = `HTTP/1.1 ${status} ${reason}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  return `${head}\r\n`
}
