// The edge's own pages, which visitors see when there is no site to show.
import type { ServerResponse } from 'node:http'

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character]!)
}

export function page(status: number, title: string, text: string): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${status} ${title}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.3rem}small{color:#777}@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}}</style>
<h1>${title}</h1><p>${text}</p><small>${status} · Berth</small></html>
`
}

const pages = {
  badHost: page(400, 'Invalid host', 'The request has no valid Host header.'),
  badPath: page(400, 'Invalid URL', 'The path of this URL contains invalid percent-encoding.'),
  unauthorized: page(401, 'Sign in', 'This page requires a name and a password.'),
  // The same for every cause and every owner, so it reveals nothing about either.
  barred: page(403, 'Not available', 'This site is not available.'),
  notFound: page(404, 'Page not found', 'This site has no page at this address.'),
  nothingDeployed: page(404, 'Nothing deployed yet', 'The project at this address has no production deployment yet.'),
  method: page(405, 'Method not allowed', 'This site only supports GET and HEAD.'),
  misdirected: page(421, 'Wrong connection', 'This connection was opened for another host. Load the page again.'),
  tooManyAttempts: page(429, 'Too many attempts', 'Wait a while before you try again.'),
  filesMissing: page(500, 'Something went wrong', 'The files of this site are missing.'),
  failed: page(500, 'Something went wrong', 'The files of this site can’t be read.'),
  storeUnavailable: page(503, 'Temporarily unavailable', 'The files of this site can’t be reached. Try again shortly.'),
  noServer: page(502, 'The server isn’t responding', 'The server behind this site is not running.'),
}

export type PageName = keyof typeof pages

const statuses: Record<PageName, number> = {
  badHost: 400,
  badPath: 400,
  unauthorized: 401,
  barred: 403,
  notFound: 404,
  nothingDeployed: 404,
  method: 405,
  misdirected: 421,
  tooManyAttempts: 429,
  filesMissing: 500,
  failed: 500,
  storeUnavailable: 503,
  noServer: 502,
}

// Not cached, because the next deployment may add a page.
const pageHeaders = [
  ...['content-type', 'text/html; charset=utf-8', 'cache-control', 'no-store'],
  ...['content-security-policy', "default-src 'none'; style-src 'unsafe-inline'", 'x-content-type-options', 'nosniff'],
]

function send(response: ServerResponse, status: number, body: string, extra: string[]): number {
  const bytes = Buffer.from(body)
  const head = response.req.method === 'HEAD'
  response.writeHead(status, [...pageHeaders, ...extra, 'content-length', String(bytes.length)])
  response.end(head ? undefined : bytes)
  return head ? 0 : bytes.length
}

/** Returns the size of the body in bytes. */
export function sendPage(response: ServerResponse, name: PageName, extra: string[] = []): number {
  return send(response, statuses[name], pages[name], extra)
}

export function sendUnknownHost(response: ServerResponse, host: string): number {
  const text = `There is no site at <b>${escapeHtml(host)}</b>. A deployment appears here once it is built, a domain once it
  is attached to a project and verified.`
  return send(response, 404, page(404, 'Unknown host', text), [])
}
