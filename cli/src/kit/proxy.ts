// Requests over TLS, and through the proxy of HTTPS_PROXY or HTTP_PROXY, which Node's fetch supports only from version 24.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { usage } from './failures.ts'
import { type ApiRequest, finish, type Transport, withLength } from './transport.ts'

export type Fetch = (input: Request, init?: RequestInit) => Promise<Response>

/** The proxy for a URL, or null. */
export function proxyFor(url: URL, env: NodeJS.ProcessEnv): URL | null {
  const read = (name: string) => env[name.toLowerCase()] || env[name]
  const setting = read(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY') || read('ALL_PROXY')
  if (!setting || bypassesProxy(url, read('NO_PROXY') ?? '')) return null
  const proxy = parse(setting)
  if (!proxy || !/^https?:$/.test(proxy.protocol))
    throw usage('The proxy must be the URL of an HTTP proxy, such as http://host:port.')
  return proxy
}

function parse(setting: string): URL | null {
  try {
    return new URL(setting.includes('://') ? setting : `http://${setting}`)
  } catch {
    return null
  }
}

/** NO_PROXY as in curl: names including subdomains, with or without a port; `*` matches all. */
function bypassesProxy({ hostname, port, protocol }: URL, list: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const actualPort = port || (protocol === 'https:' ? '443' : '80')
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    const [, name = '', wanted] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase().replace(/^\*?\./, ''))!
    const isHost = name !== '' && (host === name || host.endsWith(`.${name}`))
    return (isHost && (!wanted || wanted === actualPort)) || (entry !== '' && host === entry.replace(/^\[|\]$/g, ''))
  })
}

/** Requests over TLS, or through a proxy. */
export function openSecure(server: string, env: NodeJS.ProcessEnv): Transport {
  const proxy = proxyFor(new URL(server), env)
  const tunnels = proxy ? new TunnelAgent(proxy) : new HttpsAgent({ keepAlive: true })
  const connections = new HttpAgent({ keepAlive: true })
  return ({ url, body, ...rest }) => {
    const options = withLength(rest, body)
    if (url.protocol === 'https:') return finish(httpsRequest(url, { ...options, agent: tunnels }), body)
    if (!proxy) return finish(httpRequest(url, { ...options, agent: connections }), body)
    const request = requesterFor(proxy)({
      ...options,
      ...addressOf(proxy),
      agent: proxy.protocol === 'http:' ? connections : undefined,
      path: url.href,
      headers: { ...options.headers, host: url.host, ...credentials(proxy) },
    })
    return finish(request, body)
  }
}

/** Node's fetch, or one that uses the server's proxy. */
export function createFetch(server: string, env = process.env): Fetch {
  if (!proxyFor(new URL(server), env)) return (input, init) => fetch(input, init)
  const transport = openSecure(server, env)
  return async (input, init) => {
    return responseOf(await transport(await apiRequestOf(init ? new Request(input, init) : input)))
  }
}

async function apiRequestOf(request: Request): Promise<ApiRequest> {
  const body = request.body ? Buffer.from(await request.arrayBuffer()) : null
  const { method, signal, url, headers } = request
  return { method, signal, url: new URL(url), headers: Object.fromEntries(headers), body }
}

const requesterFor = (proxy: URL) => (proxy.protocol === 'https:' ? httpsRequest : httpRequest)

function addressOf(proxy: URL) {
  const port = Number(proxy.port) || (proxy.protocol === 'https:' ? 443 : 80)
  return { host: proxy.hostname.replace(/^\[|\]$/g, ''), port }
}

function credentials({ username, password }: URL): Record<string, string> {
  if (!username) return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }
}

function responseOf(response: IncomingMessage): Response {
  const status = response.statusCode!
  const headers = new Headers()
  for (let at = 0; at < response.rawHeaders.length; at += 2)
    headers.append(response.rawHeaders[at]!, response.rawHeaders[at + 1]!)
  const isEmpty = status === 204 || status === 304
  if (isEmpty) response.resume()
  return new Response(isEmpty ? null : (Readable.toWeb(response) as ReadableStream), { status, headers })
}

/** TLS to the server through a CONNECT tunnel, so that the proxy sees only host names. */
class TunnelAgent extends HttpsAgent {
  readonly #proxy: URL

  constructor(proxy: URL) {
    super({ keepAlive: true })
    this.#proxy = proxy
  }

  override createConnection(
    options: AgentOptions & { host: string; port: number },
    done: (error: Error | null, socket?: unknown) => void,
  ) {
    const target = `${options.host.includes(':') ? `[${options.host}]` : options.host}:${options.port}`
    const headers = { host: target, ...credentials(this.#proxy) }
    const request = requesterFor(this.#proxy)({
      ...addressOf(this.#proxy),
      method: 'CONNECT',
      path: target,
      headers,
      agent: false,
    })
    request.on('error', done)
    request.on('connect', (response, socket) => {
      if (response.statusCode === 200)
        return done(null, connectTls({ ...options, socket, servername: options.servername ?? options.host }))
      socket.destroy()
      done(Object.assign(new Error(`The proxy responded with ${response.statusCode}.`), { syscall: 'CONNECT' }))
    })
    request.end()
    // The callback delivers the socket.
    return undefined
  }
}
