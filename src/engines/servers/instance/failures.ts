// The errors of servers, and the pages that visitors get for them.
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { endWithResponse } from '../../../platform/http/final-response.ts'

/** The server could not be started or did not become healthy. The message is for its owner. */
export class ServerUnavailable extends Error {
  override name = 'ServerUnavailable'
}

/** The server started but exited or didn't respond: a fault of the server, not of the machine. */
export class ServerUnhealthy extends ServerUnavailable {
  override name = 'ServerUnhealthy'
}

/** There is no connection to the instance, so no part of the request has reached it. */
export class InstanceUnreachable extends ServerUnavailable {
  override name = 'InstanceUnreachable'
  readonly status: FailureStatus
  /** Whether the request may be retried, with another instance or with this one later. */
  readonly retryable: boolean

  constructor(message: string, { status = 503, retryable }: { status?: FailureStatus; retryable: boolean }) {
    super(message)
    this.status = status
    this.retryable = retryable
  }
}

const failures = {
  502: ['The server isn’t responding', 'The server behind this site failed or can’t be reached.'],
  503: ['The server isn’t running', 'The server behind this site can’t be started right now. Try again soon.'],
  504: ['The server took too long', 'The server behind this site didn’t respond in time.'],
} as const

export type FailureStatus = keyof typeof failures

const reasons: Record<FailureStatus, string> = {
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

// The cause is only in the owner's log, because visitors must not see output and addresses.
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

/** Sends the error page, or ends the response if its headers were already sent. */
export function sendFailure(response: ServerResponse, status: FailureStatus): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const { req: request } = response
  const body = bodyOf(status)
  const headers = headersOf(status, body).flat()
  if (!request.complete) {
    // We discard the rest of the body, so the connection can't be reused.
    headers.push('connection', 'close')
    request.unpipe()
    request.resume()
  }
  response.writeHead(status, headers)
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** Like `sendFailure`, for upgrade requests, which have no response object. */
export function sendFailureToSocket(socket: Duplex, status: FailureStatus): void {
  if (socket.destroyed) return
  const body = bodyOf(status)
  const lines = headersOf(status, body).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${reasons[status]}\r\n${lines.join('')}connection: close\r\n\r\n`)
  endWithResponse(socket, body)
}
