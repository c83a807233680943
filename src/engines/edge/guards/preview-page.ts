// The page that visitors of a protected preview see first. It works without scripts and is kept by no cache.
import type { ServerResponse } from 'node:http'
import { escapeHtml, page } from '../answer/pages.ts'
import type { Gate } from '../hosts/targets.ts'

const texts = {
  first: { status: 401, text: '' },
  wrong: { status: 401, text: 'That is not the password.' },
  badLink: { status: 401, text: 'The link is not valid, or not any more.' },
  tooMany: { status: 429, text: 'Too many tries. Wait a while before the next one.' },
  busy: { status: 503, text: 'Passwords cannot be checked now. Try again shortly.' },
} as const

/** `to` is where the visitor wanted to go. */
export type Asking = { gate: Gate; to: string; text: keyof typeof texts }

const headers = [
  ...['content-type', 'text/html; charset=utf-8', 'cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
  'content-security-policy',
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  ...['referrer-policy', 'no-referrer', 'x-robots-tag', 'noindex'],
]

/** Returns the size of the body in bytes. */
export function sendAsking(response: ServerResponse, { gate, to, text }: Asking, extra: string[]): number {
  const { status, text: said } = texts[text]
  const bytes = Buffer.from(page(status, 'This preview is protected', bodyOf(gate, to, said)))
  const head = response.req.method === 'HEAD'
  response.writeHead(status, [...headers, ...extra, 'content-length', String(bytes.length)])
  response.end(head ? undefined : bytes)
  return head ? 0 : bytes.length
}

function bodyOf({ kind }: Gate, to: string, said: string): string {
  if (kind === 'link') return `${said} Ask whoever runs the project for a link to it.`.trim()
  return `${said}</p><form method="post" action="/.berth/unlock"><input type="hidden" name="to" value="${escapeHtml(to)}">
<p><label>Password <input type="password" name="password" required autofocus autocomplete="current-password"></label>
<button>Open</button></p></form><p>`
}
