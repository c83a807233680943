// The page that visitors of a protected preview see first. It needs no scripts and is never cached.
import type { ServerResponse } from 'node:http'
import { escapeHtml, page } from '../answer/pages.ts'
import type { Gate } from '../hosts/targets.ts'

const texts = {
  first: { status: 401, text: '' },
  wrong: { status: 401, text: 'That is not the password.' },
  badLink: { status: 401, text: 'This link is invalid or has expired.' },
  tooManyAttempts: { status: 429, text: 'Too many attempts. Wait a while before you try again.' },
  busy: { status: 503, text: 'We can’t check passwords right now. Try again shortly.' },
} as const

/** `to` is the path the visitor requested. */
export type UnlockPage = { gate: Gate; to: string; text: keyof typeof texts }

const headers = [
  ...['content-type', 'text/html; charset=utf-8', 'cache-control', 'no-store', 'x-content-type-options', 'nosniff'],
  'content-security-policy',
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  ...['referrer-policy', 'no-referrer', 'x-robots-tag', 'noindex'],
]

/** Returns the size of the body in bytes. */
export function sendUnlockPage(response: ServerResponse, { gate, to, text }: UnlockPage, extra: string[]): number {
  const { status, text: message } = texts[text]
  const bytes = Buffer.from(page(status, 'This preview is protected', bodyOf(gate, to, message)))
  const head = response.req.method === 'HEAD'
  response.writeHead(status, [...headers, ...extra, 'content-length', String(bytes.length)])
  response.end(head ? undefined : bytes)
  return head ? 0 : bytes.length
}

function bodyOf({ kind }: Gate, to: string, message: string): string {
  if (kind === 'link') return `${message} Ask the owner of this project for a link.`.trim()
  return `${message}</p><form method="post" action="/.berth/unlock"><input type="hidden" name="to" value="${escapeHtml(to)}">
<p><label>Password <input type="password" name="password" required autofocus autocomplete="current-password"></label>
<button>Open</button></p></form><p>`
}
