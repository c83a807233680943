// Proxies one request to a server and streams its response back.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnswerHead } from '../instance/answer-head.ts'
import { type Connection, Stalled } from '../instance/connection.ts'
import { NotReached, sendFailure } from '../instance/failures.ts'
import type { Upstream } from '../instance/instance.ts'
import { endWith, writePart } from '../instance/parts.ts'
import { headersForServer, headersForVisitor, requestHead } from './headers.ts'
import { bodyLengthOf, sendBody } from './request-body.ts'

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export type ForwardOptions = {
  stallMs: number
  isRunning(instance: Upstream): boolean
  checkForCrash(instance: Upstream): void
  /** Nothing of the request was sent: queues it again, or returns false. */
  again(error: Error): boolean
}

export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  instance: Upstream,
  { stallMs, isRunning, checkForCrash, again }: ForwardOptions,
): void {
  // The visitor disconnected while the server was starting.
  if (response.destroyed || response.closed) return
  const method = request.method!
  const length = bodyLengthOf(request)
  const body = length !== 0
  const head = requestHead(method, headersForServer(request))
  if (head === null) return void sendFailure(response, 502)
  // A server may close an idle connection just when it is reused. A safe request is then repeated on a new connection.
  const repeatable = !body && safeMethods.has(method)
  let connection: Connection | null = null
  let stopBody: (() => void) | null = null
  let left = false

  const done = instance.begin('request', () => {
    connection?.destroy()
    response.destroy()
  })
  const leave = () => {
    left = true
    connection?.destroy()
    stopBody?.()
    done()
  }
  response.once('close', leave)
  attempt(false)

  function attempt(repeated: boolean): void {
    const idle = repeated ? null : instance.pool.take(repeatable)
    if (idle) return void exchange(idle)
    instance.pool.open().then(exchange, (error: NodeJS.ErrnoException) => refused(error, repeated))
  }

  function exchange(taken: Connection): void {
    if (left) return void taken.destroy()
    connection = taken
    taken.send(head!, { head: answer, part, failed: (error) => broken(error, taken) }, { method, body, stallMs })
    if (body) stopBody = sendBody(request, taken, length, () => broken(new Error('the body is too short'), taken))
  }

  /** Nothing of the request was sent. */
  function refused(error: NodeJS.ErrnoException, repeated: boolean): void {
    if (left) return
    const isAway = error instanceof NotReached
    if (!isAway) checkForCrash(instance)
    // The server crashed and its end is not known yet.
    const isGone = !repeated && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT')
    if ((isAway || isGone) && again(error)) {
      response.off('close', leave)
      return void done()
    }
    sendFailure(response, isAway ? error.status : 502)
  }

  function broken(error: Error, taken: Connection): void {
    connection = null
    stopBody?.()
    taken.destroy()
    // Its machine is gone: another one may answer what changes nothing.
    if (error instanceof NotReached && repeatable && !taken.answering && again(error)) {
      response.off('close', leave)
      return void done()
    }
    const stalled = error instanceof Stalled
    const stale = repeatable && taken.reused && !taken.answering && !stalled
    if (!stalled && !stale) checkForCrash(instance)
    // Not repeated after a crash: the request may have caused it.
    if (stale && isRunning(instance)) return void attempt(true)
    sendFailure(response, stalled ? 504 : 502)
  }

  function answer({ status, headers, connection }: AnswerHead, alone: boolean): void {
    response.writeHead(status, headersForVisitor(headers, connection, status))
    // The first event of an event stream may come much later; otherwise headers and body go out in one packet.
    if (alone) setImmediate(flush)
  }

  function flush(): void {
    if (connection && !response.destroyed) response.flushHeaders()
  }

  /** The server waits as long as the visitor takes anything at all. */
  function awaitVisitor({ pace, socket: server }: Connection): void {
    pace.pause()
    server.setTimeout(0)
    response.setTimeout(stallMs)
    response.once('drain', () => {
      response.setTimeout(0)
      if (!connection) return
      server.setTimeout(stallMs)
      pace.resume()
    })
  }

  function part(part: Buffer | null, last: boolean): void {
    // Its `close` is about to come.
    if (response.destroyed || response.closed) return void connection?.destroy()
    if (!last) {
      if (!writePart(response, part!) && connection && !connection.pace.isPaused) awaitVisitor(connection)
      return
    }
    connection = null
    if (body && !request.readableEnded) {
      // Answered before the whole request body was read: the rest is discarded.
      stopBody?.()
      request.resume()
    }
    endWith(response, part)
  }
}
