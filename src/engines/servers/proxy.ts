// Proxies one request to a server and streams its response back.
import { type ClientRequest, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import { pipeline } from 'node:stream'
import { type FailureStatus, sendFailure } from './failures.ts'
import { hasBody, headersForServer, headersForVisitor } from './headers.ts'
import type { Instance } from './instance.ts'

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

export type ForwardOptions = {
  stallMs: number
  isRunning(instance: Instance): boolean
  checkForCrash(instance: Instance): void
  /** Queues the request again for the next run; null if it was already queued again. */
  again: (() => void) | null
}

export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  instance: Instance,
  { stallMs, isRunning, checkForCrash, again }: ForwardOptions,
): void {
  // The visitor disconnected while the server was starting.
  if (response.destroyed || response.closed) return
  const body = hasBody(request)
  const { path, headers } = headersForServer(request)
  const { method } = request
  // A server may close an idle connection just when it is reused. A safe request is then repeated on a new connection;
  // any other request gets a new connection from the start.
  const repeatable = !body && safeMethods.has(method!)
  let upstream: ClientRequest
  let status: FailureStatus = 502

  function attempt(fresh: boolean, repeated = false): void {
    upstream = send({
      ...instance.address,
      agent: fresh ? instance.freshAgent : instance.agent,
      method,
      path,
      headers,
      timeout: stallMs,
    })
    upstream.on('response', answer)
    upstream.on('timeout', () => {
      status = 504
      upstream.destroy(new Error('the server took too long'))
    })
    upstream.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (response.destroyed || response.writableEnded) return
      if (status === 502 && !(repeatable && upstream.reusedSocket)) checkForCrash(instance)
      // After the headers, errors are handled by the pipeline of the response.
      if (response.headersSent) return
      const stale = repeatable && !fresh && upstream.reusedSocket && status === 502
      // Not repeated after a crash: the request may have caused it.
      if (stale && isRunning(instance)) return attempt(true, true)
      // The server crashed and its end is not known yet; nothing of the request was sent.
      const unsent = !body && !repeated && (code === 'ECONNREFUSED' || code === 'ENOENT')
      if (unsent && again) {
        response.off('close', leave)
        done()
        return again()
      }
      sendFailure(response, status)
    })
    if (body) request.pipe(upstream)
    else upstream.end()
  }

  function answer(answered: IncomingMessage): void {
    try {
      response.writeHead(answered.statusCode!, headersForVisitor(answered))
    } catch {
      answered.destroy()
      return void sendFailure(response, 502)
    }
    let begun = false
    answered.once('data', () => {
      begun = true
    })
    // The first event of an event stream may come much later; otherwise headers and body go out in one packet.
    setImmediate(() => {
      if (!begun && !response.writableEnded && !response.destroyed) response.flushHeaders()
    })
    pipeline(answered, response, () => {
      // Answered before the whole request body was read: the rest is discarded.
      if (request.complete) return
      request.unpipe()
      request.resume()
      upstream.destroy()
    })
  }

  const done = instance.begin('request', () => {
    upstream.destroy()
    response.destroy()
  })
  const leave = () => {
    if (!response.writableFinished) upstream.destroy()
    done()
  }
  response.once('close', leave)
  attempt(!repeatable)
}
