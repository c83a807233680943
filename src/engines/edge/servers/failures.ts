// What a visitor gets when the server behind a site gives no answer.
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A server that could not be started or did not become healthy; the message says why, for its owner. */
export class ServerUnavailable extends Error {
  override name = 'ServerUnavailable'
}

/** It was started and ended or did not answer: its own fault, and not that of the machine it ran on. */
export class ServerUnhealthy extends ServerUnavailable {
  override name = 'ServerUnhealthy'
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

// Why it failed is for the owner's log: outputs and addresses are nothing for visitors.
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

/** Ends a response that has no head yet. */
export function sendFailure(response: ServerResponse, status: FailureStatus): void {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const { req: request } = response
  const body = bodyOf(status)
  const headers = headersOf(status, body).flat()
  if (!request.complete) {
    // Nobody takes the rest of the body, so the connection is of no more use.
    headers.push('connection', 'close')
    request.unpipe()
    request.resume()
  }
  response.writeHead(status, headers)
  response.end(request.method === 'HEAD' ? undefined : body)
}

/** The same on a socket that asked for an upgrade, for which Node has no response. */
export function sendFailureTo(socket: Duplex, status: FailureStatus): void {
  if (socket.destroyed) return
  const body = bodyOf(status)
  const lines = headersOf(status, body).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${status} ${reasons[status]}\r\n${lines.join('')}connection: close\r\n\r\n`)
  socket.end(body)
}
