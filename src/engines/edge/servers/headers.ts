// The headers of a request and an answer as they pass the proxy.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

// They speak of one connection, and there are two (RFC 9110, 7.6.1). `expect` was answered by our own server.
const hopByHop = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
])

// Said by us alone: a server decides by them who its visitor is and whether the way was encrypted.
const spoofable = new Set([
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto'],
  ...['x-forwarded-server', 'x-forwarded-ssl', 'x-forwarded-scheme', 'x-forwarded-prefix', 'x-real-ip'],
])

function namedBy(connection: string | undefined): Set<string> | null {
  if (connection === undefined || /^\s*(keep-alive|close|upgrade)\s*$/i.test(connection)) return null
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** Whether a body follows the head of a request. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** Path and host that a request is for: an address in its first line counts for more than the Host header. */
function destinationOf(request: IncomingMessage): { path: string; host: string } {
  const url = request.url!
  const [, authority, rest] = url.startsWith('/') ? [] : (/^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [])
  if (authority === undefined) return { path: url, host: request.headers.host ?? '' }
  return { path: rest!.startsWith('/') ? rest! : `/${rest}`, host: authority }
}

/** In the order and spelling of the visitor; `upgrade` for requests that ask to leave HTTP. */
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
    // Servers that see headers as variables take `X_Real_IP` for `X-Real-IP`.
    if (name === 'host' || hopByHop.has(name) || spoofable.has(name.replaceAll('_', '-'))) continue
    if (named?.has(name) && name !== 'content-length') continue
    headers.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  const { socket } = request
  // Where one socket listens for both families, version 4 comes in disguise.
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '')
  headers.push('X-Forwarded-For', address, 'X-Forwarded-Host', host)
  headers.push('X-Forwarded-Proto', (socket as TLSSocket).encrypted ? 'https' : 'http')
  if (kind === 'upgrade') headers.push('Connection', 'Upgrade', 'Upgrade', request.headers.upgrade ?? 'websocket')
  else if (request.headers['transfer-encoding'] !== undefined) headers.push('Transfer-Encoding', 'chunked')
  // Node would announce a body of unknown length, which some servers refuse where none belongs.
  else if (request.headers['content-length'] === undefined && /^P(OST|UT|ATCH)$/.test(request.method!))
    headers.push('Content-Length', '0')
  return { path, headers }
}

export function headersForVisitor(answer: IncomingMessage): string[] {
  const { rawHeaders } = answer
  const named = namedBy(answer.headers.connection)
  const headers: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (hopByHop.has(name) || (named?.has(name) && name !== 'content-length')) continue
    headers.push(rawHeaders[i]!, rawHeaders[i + 1]!)
  }
  return headers
}
