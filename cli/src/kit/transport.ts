// Sends a request to the server. Code for TLS and proxies is loaded only if needed.
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'

export type ApiRequest = {
  method: string
  url: URL
  headers: Record<string, string>
  body: Buffer | null
  signal: AbortSignal
}
export type Transport = (request: ApiRequest) => Promise<IncomingMessage>

/** Reuses connections. */
export async function openTransport(server: string, env: NodeJS.ProcessEnv): Promise<Transport> {
  const mayHaveProxy = Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name))
  if (mayHaveProxy || !server.startsWith('http:')) return (await import('./proxy.ts')).openSecure(server, env)
  const agent = new HttpAgent({ keepAlive: true })
  return ({ url, body, ...options }) => finish(httpRequest(url, { ...withLength(options, body), agent }), body)
}

export function withLength<T extends Pick<ApiRequest, 'headers'>>(options: T, body: Buffer | null): T {
  if (!body) return options
  return { ...options, headers: { ...options.headers, 'content-length': String(body.length) } }
}

export function finish(request: ClientRequest, body: Buffer | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('error', reject).on('response', resolve)
    request.end(body ?? undefined)
  })
}
