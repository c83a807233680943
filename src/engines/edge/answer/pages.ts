// The edge's own pages: what a visitor sees when there is no site to show.
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
  badHost: page(400, 'Which host?', 'The request names no host, or not one that can exist.'),
  badPath: page(400, 'Bad address', 'The path of the request is not valid: its percent-encoding does not decode.'),
  unauthorized: page(401, 'Name and password', 'This page asks for a name and a password.'),
  // The same for every cause and every owner: a visitor learns nothing about them.
  barred: page(403, 'Not available', 'What was at this address is not available.'),
  notFound: page(404, 'Page not found', 'This site has no page at this address.'),
  nothingDeployed: page(404, 'Nothing deployed yet', 'The project at this address has no production deployment yet.'),
  method: page(405, 'Method not allowed', 'Pages and files are read with GET or HEAD.'),
  misdirected: page(421, 'Wrong connection', 'This connection was opened for another host. Load the page again.'),
  tooMany: page(429, 'Too many tries', 'Wait a while before the next name and password.'),
  filesMissing: page(500, 'The site cannot be shown', 'Its files are not to be found on this server.'),
  failed: page(500, 'The site cannot be shown', 'Something went wrong while reading its files.'),
  storeAway: page(503, 'The site cannot be shown now', 'Its files cannot be reached at present. Try again shortly.'),
  noServer: page(502, 'The server does not answer', 'The server behind this site is not running.'),
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
  tooMany: 429,
  filesMissing: 500,
  failed: 500,
  storeAway: 503,
  noServer: 502,
}

// Not cached: the next deployment may put a page there.
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
  const text = `No site is known here as <b>${escapeHtml(host)}</b>. A deployment appears when it is built; a domain appears
when it is attached to a project and its ownership is proved.`
  return send(response, 404, page(404, 'Unknown host', text), [])
}
