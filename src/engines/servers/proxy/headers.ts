// Rewrites the headers of requests and responses that pass the proxy.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

// They describe one connection, and a proxy has two (RFC 9110, 7.6.1). `expect` was answered by our own server.
const hopByHop = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
])

// Set only by the proxy: servers read from them who the visitor is and whether the connection was encrypted.
const spoofable = new Set([
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto'],
  ...['x-forwarded-server', 'x-forwarded-ssl', 'x-forwarded-scheme', 'x-forwarded-prefix', 'x-real-ip'],
])

function namedBy(connection: string | undefined): Set<string> | null {
  if (connection === undefined || /^\s*(keep-alive|close|upgrade)\s*$/i.test(connection)) return null
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** Path and host of a request: an absolute URL in the request line overrides the Host header. */
function destinationOf(request: IncomingMessage): { path: string; host: string } {
  const url = request.url!
  const [, authority, rest] = url.startsWith('/') ? [] : (/^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [])
  if (authority === undefined) return { path: url, host: request.headers.host ?? '' }
  return { path: rest!.startsWith('/') ? rest! : `/${rest}`, host: authority }
}

/** In the order and spelling of the visitor; `upgrade` is set for upgrade requests. */
export function headersForServer(
  request: IncomingMessage,
  kind: 'request' | 'upgrade' = 'request',
): { path: string; headers: string[] } {
  const { rawHeaders } = request
  const { path, host } = destinationOf(request)
  const named = namedBy(request.headers.connection)
  const headers = ['Host', host]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    // Servers that read headers from CGI-like variables cannot tell `X_Real_IP` from `X-Real-IP`.
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
  // Some servers refuse such a request without a length.
  else if (request.headers['content-length'] === undefined && /^P(OST|UT|ATCH)$/.test(request.method!))
    headers.push('Content-Length', '0')
  return { path, headers }
}

/**
 * `connection` is the header of that name. A 204 has no length (RFC 9110, 8.6), and clients of HTTP/2 break a stream
 * with one off; that of a 304 or of an answer to HEAD says how long another body is.
 */
export function headersForVisitor(
  rawHeaders: readonly string[],
  connection: string | undefined,
  status: number,
): string[] {
  const named = namedBy(connection)
  const headers: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (hopByHop.has(name) || (named?.has(name) && name !== 'content-length')) continue
    if (status === 204 && name === 'content-length') continue
    headers.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  return headers
}

// Node has checked what came by HTTP/1.1; HTTP/2 allows more.
const token = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/
const target = /^[\x21-\x7e\x80-\xff]+$/
const value = /^[\t\x20-\x7e\x80-\xff]*$/

/** The head of a request as it is sent, as latin1; null if its parts would make more of it than one head. */
export function requestHead(method: string, { path, headers }: { path: string; headers: string[] }): string | null {
  if (!token.test(method) || !target.test(path)) return null
  let head = `${method} ${path} HTTP/1.1\r\n`
  for (let i = 0; i < headers.length; i += 2) {
    if (!token.test(headers[i]!) || !value.test(headers[i + 1]!)) return null
    head += `${headers[i]}: ${headers[i + 1]}\r\n`
  }
  return `${head}\r\n`
}
