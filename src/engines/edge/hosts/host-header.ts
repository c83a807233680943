// Reads the host and the path of a request and normalizes the host for lookups.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

/** Lower case, without port and trailing dot; null if invalid. Addresses in brackets keep their port. */
export function hostName(text: string): string | null {
  if (text.startsWith('[')) return /^\[[0-9a-f:.]{2,45}\](?::\d{1,5})?$/i.test(text) ? text.toLowerCase() : null
  let end = text.length
  let upper = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if ((code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 45 || code === 46 || code === 95) continue
    if (code >= 65 && code <= 90) upper = true
    else if (code === 58 && isPort(text, i + 1)) {
      end = i
      break
    } else return null
  }
  if (end > 0 && text.charCodeAt(end - 1) === 46) end--
  if (end === 0 || end > 253) return null
  const name = end === text.length ? text : text.slice(0, end)
  return upper ? name.toLowerCase() : name
}

function isPort(text: string, start: number): boolean {
  if (text.length - start > 5) return false
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 48 || code > 57) return false
  }
  return true
}

/** An absolute URL in the request line overrides the Host header (RFC 9112, 3.2.2). */
export function destinationOf(request: IncomingMessage): { host: string | null; url: string } {
  const url = request.url!
  if (url.charCodeAt(0) === 47) return { host: hostName(request.headers.host ?? ''), url }
  const [, authority, rest] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? []
  if (authority === undefined) return { host: hostName(request.headers.host ?? ''), url }
  return { host: hostName(authority), url: rest!.startsWith('/') ? rest! : `/${rest}` }
}

export function hasOneHost({ rawHeaders }: IncomingMessage): boolean {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count === 1
}

/** Makes path and query safe for a header: Node's parser accepts bytes above ASCII. */
export function pathOf(url: string): string {
  return url.startsWith('/') ? url.replace(/[^\x21-\x7e]/g, encodeURIComponent) : '/'
}

export const isEncrypted = (request: IncomingMessage) => (request.socket as TLSSocket).encrypted === true
