// Proxies one request to a server and streams its response back.
import {
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
  request as send,
} from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { type FailureStatus, NotReached, sendFailure } from './failures.ts'
import { hasBody, headersForServer, headersForVisitor } from './headers.ts'
import type { Upstream } from './instance.ts'

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
  const body = hasBody(request)
  const { path, headers } = headersForServer(request)
  const { method } = request
  // A server may close an idle connection just when it is reused. A safe request is then repeated on a new connection;
  // any other request gets a new connection from the start.
  const repeatable = !body && safeMethods.has(method!)
  let upstream: ClientRequest | undefined
  let status: FailureStatus = 502

  /** A body can be read once, so the connection is there before anything of it is read. */
  function attemptWithBody(): void {
    instance.connect().then(
      (opened) => (response.destroyed ? opened.destroy() : attempt(true, false, opened)),
      (error) => {
        if (response.destroyed) return
        checkForCrash(instance)
        if (!queued(error)) sendFailure(response, error instanceof NotReached ? error.status : 502)
      },
    )
  }

  function queued(error: Error): boolean {
    if (!again(error)) return false
    response.off('close', leave)
    done()
    return true
  }

  function attempt(fresh: boolean, repeated = false, opened?: Socket): void {
    const agent = fresh ? instance.freshAgent : instance.agent
    const sent = send({ agent, opened, method, path, headers, timeout: stallMs } as RequestOptions)
    upstream = sent
    sent.on('response', answer)
    sent.on('timeout', () => {
      status = 504
      sent.destroy(new Error('the server took too long'))
    })
    sent.on('error', (error: NodeJS.ErrnoException) => {
      if (response.destroyed || response.writableEnded) return
      const { code } = error
      if (error instanceof NotReached) status = error.status
      if (status === 502 && !(repeatable && sent.reusedSocket)) checkForCrash(instance)
      // After the headers, errors are handled by the pipeline of the response.
      if (response.headersSent) return
      const stale = repeatable && !fresh && sent.reusedSocket && status === 502
      // Not repeated after a crash: the request may have caused it.
      if (stale && isRunning(instance)) return attempt(true, true)
      // The server crashed and its end is not known yet; nothing of the request was sent.
      const refused = !opened && !repeated && (code === 'ECONNREFUSED' || code === 'ENOENT')
      if ((refused || error instanceof NotReached) && queued(error)) return
      sendFailure(response, status)
    })
    if (body) request.pipe(sent)
    else sent.end()
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
      upstream?.destroy()
    })
  }

  const done = instance.begin('request', () => {
    upstream?.destroy()
    response.destroy()
  })
  const leave = () => {
    if (!response.writableFinished) upstream?.destroy()
    done()
  }
  response.once('close', leave)
  if (body) attemptWithBody()
  else attempt(!repeatable)
}
