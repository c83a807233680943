// Proxies one request to a server and streams its response back.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Connection, Stalled } from '../instance/connection.ts'
import { InstanceUnreachable, sendFailure } from '../instance/failures.ts'
import type { Upstream } from '../instance/instance.ts'
import { endWithPart, writePart } from '../instance/parts.ts'
import type { ResponseHead } from '../instance/response-head.ts'
import { headersForServer, headersForVisitor, requestHead } from './headers.ts'
import { bodyLengthOf, sendBody } from './request-body.ts'

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export type ForwardOptions = {
  stallMs: number
  isRunning(instance: Upstream): boolean
  checkForCrash(instance: Upstream): void
  /** Called if no part of the request was sent. Queues it again, or returns false. */
  retry(error: Error): boolean
}

export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  instance: Upstream,
  { stallMs, isRunning, checkForCrash, retry }: ForwardOptions,
): void {
  // The visitor disconnected while the server was starting.
  if (response.destroyed || response.closed) return
  const method = request.method!
  const length = bodyLengthOf(request)
  const body = length !== 0
  const head = requestHead(method, headersForServer(request))
  if (head === null) return void sendFailure(response, 502)
  // A server may close an idle connection just as it is reused. Safe requests are then repeated on a new one.
  const repeatable = !body && safeMethods.has(method)
  let connection: Connection | null = null
  let stopBody: (() => void) | null = null
  let closed = false

  const done = instance.begin('request', () => {
    connection?.destroy()
    response.destroy()
  })
  const onClose = () => {
    closed = true
    connection?.destroy()
    stopBody?.()
    done()
  }
  response.once('close', onClose)
  attempt(false)

  function attempt(repeated: boolean): void {
    const idle = repeated ? null : instance.pool.acquire(repeatable)
    if (idle) return void exchange(idle)
    instance.pool.open().then(exchange, (error: NodeJS.ErrnoException) => onConnectError(error, repeated))
  }

  function exchange(opened: Connection): void {
    if (closed) return void opened.destroy()
    connection = opened
    opened.send(
      head!,
      { head: onHead, part: onPart, failed: (error) => onError(error, opened) },
      { method, body, stallMs },
    )
    if (body) stopBody = sendBody(request, opened, length, () => onError(new Error('the body is too short'), opened))
  }

  /** No part of the request was sent. */
  function onConnectError(error: NodeJS.ErrnoException, repeated: boolean): void {
    if (closed) return
    const isUnreachable = error instanceof InstanceUnreachable
    if (!isUnreachable) checkForCrash(instance)
    // The server has crashed, but its exit hasn't been reported yet.
    const isGone = !repeated && (error.code === 'ECONNREFUSED' || error.code === 'ENOENT')
    if ((isUnreachable || isGone) && retry(error)) {
      response.off('close', onClose)
      return void done()
    }
    sendFailure(response, isUnreachable ? error.status : 502)
  }

  function onError(error: Error, opened: Connection): void {
    connection = null
    stopBody?.()
    opened.destroy()
    // Its machine is lost. Another instance may serve safe requests.
    if (error instanceof InstanceUnreachable && repeatable && !opened.hasResponse && retry(error)) {
      response.off('close', onClose)
      return void done()
    }
    const stalled = error instanceof Stalled
    const stale = repeatable && opened.reused && !opened.hasResponse && !stalled
    if (!stalled && !stale) checkForCrash(instance)
    // Not repeated after a crash, which the request may have caused.
    if (stale && isRunning(instance)) return void attempt(true)
    sendFailure(response, stalled ? 504 : 502)
  }

  function onHead({ status, headers, connection }: ResponseHead, alone: boolean): void {
    response.writeHead(status, headersForVisitor(headers, connection, status))
    // The first event of a stream may come much later, so the head must not wait for it.
    if (alone) setImmediate(flush)
  }

  function flush(): void {
    if (connection && !response.destroyed) response.flushHeaders()
  }

  /** Pauses the server until the visitor has taken the pending data. */
  function waitForVisitor({ pace, socket: server }: Connection): void {
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

  function onPart(part: Buffer | null, last: boolean): void {
    // The response's `close` event is about to follow.
    if (response.destroyed || response.closed) return void connection?.destroy()
    if (!last) {
      if (!writePart(response, part!) && connection && !connection.pace.isPaused) waitForVisitor(connection)
      return
    }
    connection = null
    if (body && !request.readableEnded) {
      // The server responded before reading the whole body, so the rest is discarded.
      stopBody?.()
      request.resume()
    }
    endWithPart(response, part)
  }
}
