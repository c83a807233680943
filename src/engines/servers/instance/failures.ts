// The response a visitor gets when the server of a site does not answer.
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { endWithResponse } from '../../../platform/http/final-response.ts'

/** The server could not be started or did not become healthy; the message tells its owner why. */
export class ServerUnavailable extends Error {
  override name = 'ServerUnavailable'
}

/** The server was started, but it exited or did not answer: a fault of the server, not of the machine. */
export class ServerUnhealthy extends ServerUnavailable {
  override name = 'ServerUnhealthy'
}

/** No connection to the instance: nothing of the request has reached it. */
export class NotReached extends ServerUnavailable {
  override name = 'NotReached'
  readonly status: FailureStatus
  /** Whether the request may be sent to another instance, or to this one later. */
  readonly again: boolean

  constructor(message: string, { status = 503, again }: { status?: FailureStatus; again: boolean }) {
    super(message)
    this.status = status
    this.again = again
  }
}

const failures = {
  502: ['The server does not answer', 'The server behind this site failed or cannot be reached.'],
  503: ['The server is not running', 'The server behind this site does not start at the moment. Try again soon.'],
  504: ['The server takes too long', 'The server behind this site has not answered in time.'],
} as const

export type FailureStatus = keyof typeof failures

const reasons: Record<FailureStatus, string> = {
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

// The cause is only in the owner's log: visitors must not see output and addresses.
function bodyOf(status: FailureStatus): Buffer {
  const [title, text] = failures[status]
  return Buffer.from(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status} ${title}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.3rem}small{color:#777}@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}}</style>
<h1>${title}</h1><p>${text}</p><small>${status} · Berth</small></html>
`)
}

function headersOf(status: FailureStatus, body: Buffer): [string, string][] {
  return [
    ['content-type', 'text/html; charset=utf-8'],
    ['cache-control', 'no-store'],
    ['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'"],
    ['x-content-type-options', 'nosniff'],
    ['content-length', String(body.length)],
    ...(status === 503 ? [['retry-after', '5'] satisfies [string, string]] : []),
  ]
}

/** Answers a request whose response headers are not sent yet. */
export function sendFailure(response: ServerResponse, status: FailureStatus): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const { req: request } = response
  const body = bodyOf(status)
  const headers = headersOf(status, body).flat()
  if (!request.complete) {
    // The rest of the body is not read, so the connection cannot be reused.
    headers.push('connection', 'close')
    request.unpipe()
    request.resume()
  }
  response.writeHead(status, headers)
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** The same for an upgrade request, for which Node has only a socket and no response. */
export function sendFailureTo(socket: Duplex, status: FailureStatus): void {
  if (socket.destroyed) return
  const body = bodyOf(status)
  const lines = headersOf(status, body).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${reasons[status]}\r\n${lines.join('')}connection: close\r\n\r\n`)
  endWithResponse(socket, body)
}
