// Rewrites the headers of requests and responses in the proxy.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

// These describe a single connection (RFC 9110, 7.6.1). Our own server has already handled `expect`.
const hopByHop = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
])

// Only the proxy may set these: servers trust them for the visitor's address and whether the connection was encrypted.
const spoofable = new Set([
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto'],
  ...['x-forwarded-server', 'x-forwarded-ssl', 'x-forwarded-scheme', 'x-forwarded-prefix', 'x-real-ip'],
])

function connectionOptions(connection: string | undefined): Set<string> | null {
  if (connection === undefined || /^\s*(keep-alive|close|upgrade)\s*$/i.test(connection)) return null
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** An absolute URL in the request line overrides the Host header. */
function destinationOf(request: IncomingMessage): { path: string; host: string } {
  const url = request.url!
  const [, authority, rest] = url.startsWith('/') ? [] : (/^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [])
  if (authority === undefined) return { path: url, host: request.headers.host ?? '' }
  return { path: rest!.startsWith('/') ? rest! : `/${rest}`, host: authority }
}

/** Preserves the visitor's order and spelling. */
export function headersForServer(
  request: IncomingMessage,
  kind: 'request' | 'upgrade' = 'request',
): { path: string; headers: string[] } {
  const { rawHeaders } = request
  const { path, host } = destinationOf(request)
  const named = connectionOptions(request.headers.connection)
  const headers = ['Host', host]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    // Servers with CGI-like variables can't distinguish `X_Real_IP` from `X-Real-IP`.
    if (name === 'host' || hopByHop.has(name) || spoofable.has(name.replaceAll('_', '-'))) continue
    if (named?.has(name) && name !== 'content-length') continue
    headers.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  const { socket } = request
  // A dual-stack socket reports IPv4 clients as IPv4-mapped IPv6 addresses.
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '')
  headers.push('X-Forwarded-For', address, 'X-Forwarded-Host', host)
  headers.push('X-Forwarded-Proto', (socket as TLSSocket).encrypted ? 'https' : 'http')
  if (kind === 'upgrade') headers.push('Connection', 'Upgrade', 'Upgrade', request.headers.upgrade ?? 'websocket')
  else headers.push('Connection', 'keep-alive')
  if (kind === 'upgrade') return { path, headers }
  if (request.headers['transfer-encoding'] !== undefined) headers.push('Transfer-Encoding', 'chunked')
  // Some servers refuse these methods without a length.
  else if (request.headers['content-length'] === undefined && /^P(OST|UT|ATCH)$/.test(request.method!))
    headers.push('Content-Length', '0')
  return { path, headers }
}

/**
 * `connection` is the Connection header. A 204 must not have a length (RFC 9110, 8.6), and HTTP/2 clients abort streams
 * with one. The length in a 304 or a response to HEAD is that of another body and stays.
 */
export function headersForVisitor(
  rawHeaders: readonly string[],
  connection: string | undefined,
  status: number,
): string[] {
  const named = connectionOptions(connection)
  const headers: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (hopByHop.has(name) || (named?.has(name) && name !== 'content-length')) continue
    if (status === 204 && name === 'content-length') continue
    headers.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  return headers
}

// Node validates HTTP/1.1 requests, but HTTP/2 allows more.
const token = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/
const target = /^[\x21-\x7e\x80-\xff]+$/
const value = /^[\t\x20-\x7e\x80-\xff]*$/

/** The latin1 head of a request; null if a part contains characters that could inject headers. */
export function requestHead(method: string, { path, headers }: { path: string; headers: string[] }): string | null {
  if (!token.test(method) || !target.test(path)) return null
  let head = `${method} ${path} HTTP/1.1\r\n`
  for (let i = 0; i < headers.length; i += 2) {
    if (!token.test(headers[i]!) || !value.test(headers[i + 1]!)) return null
    head += `${headers[i]}: ${headers[i + 1]}\r\n`
  }
  return `${head}\r\n`
}
