// A receiver of webhooks on a real socket that does what a test tells it to, and remembers what came.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export type Received = {
  headers: Record<string, string>
  body: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  event: any
  path: string
  atMs: number
}

export type Behaviour = (response: ServerResponse, request: IncomingMessage, received: Received) => void

export type Receiver = {
  url: string
  port: number
  received: Received[]
  connections: number
  /** What is done from now on. */
  behave(behaviour: Behaviour): void
  close(): Promise<void>
}

export const answers =
  (status: number, headers: Record<string, string> = {}, body = ''): Behaviour =>
  (response) =>
    response.writeHead(status, headers).end(body)

export async function startReceiver(
  behaviour: Behaviour = answers(204),
  tls?: { cert: string; key: string },
): Promise<Receiver> {
  let current = behaviour
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const headers = request.headers as Record<string, string>
      const one = { headers, body, event: JSON.parse(body), path: request.url!, atMs: Date.now() }
      receiver.received.push(one)
      current(response, request, one)
    })
  }
  const server = tls ? createSecureServer(tls, listener) : createServer(listener)
  server.on('connection', () => receiver.connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const receiver: Receiver = {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/hook`,
    port,
    received: [],
    connections: 0,
    behave(next) {
      current = next
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return receiver
}
