// A runner's port, which connects edges with a certificate of this installation to its instances.
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { nodeUri } from '../../../tls/internal-ca.ts'
import type { NodeCredentials } from '../../../tls/node-credentials.ts'
import { heartbeatLine, maxReplyLength, protocol, type Reply } from '../instance/dial.ts'
import { ServerUnavailable } from '../instance/failures.ts'

export type PortOptions = {
  host: string
  port: number
  credentials: Pick<NodeCredentials, 'follow'>
  /** Connects to an instance; null if it isn't on this node. */
  connect(key: string): Promise<Socket | null>
  log: Logger
}

export type RunnerPort = { port: number; close(): Promise<void> }

// Limits how long unauthenticated peers can hold a connection.
const handshakeTimeoutMs = 5_000
const maxLineLength = 200
const keepAliveMs = 30_000

export async function openRunnerPort({ host, port, credentials, connect, log }: PortOptions): Promise<RunnerPort> {
  const connections = new Set<TLSSocket>()
  const server = createServer({
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    ALPNProtocols: [protocol],
    handshakeTimeout: handshakeTimeoutMs,
  })
  credentials.follow(({ cert, key, ca }) => server.setSecureContext({ cert, key, ca, minVersion: 'TLSv1.3' }))
  server.on('tlsClientError', (err, socket) => {
    log.warn({ reason: err.message, from: socket.remoteAddress }, 'a connection to the runner was refused')
  })
  server.on('secureConnection', (edge) => {
    connections.add(edge)
    // An edge whose machine loses power closes no connections.
    edge.setKeepAlive(true, keepAliveMs)
    edge.on('close', () => connections.delete(edge))
    edge.on('error', () => edge.destroy())
    // TLS has already checked the purpose of the certificate.
    const isEdge = edge.getPeerX509Certificate()?.subjectAltName?.startsWith(`URI:${nodeUri('edge', '')}`)
    if (!edge.authorized || !isEdge || edge.alpnProtocol !== protocol) return void edge.destroy()
    readLine(edge, (key) => void serve(edge, key))
  })

  async function serve(edge: TLSSocket, key: string): Promise<void> {
    const reply = (text: Reply) => void edge.end(`${text.replaceAll('\n', ' ').slice(0, maxReplyLength - 1)}\n`)
    if (key === heartbeatLine) {
      edge.write('ok\n' satisfies `${Reply}\n`)
      return void edge.pipe(edge)
    }
    try {
      const instance = await connect(key)
      if (!instance) return reply('gone')
      if (edge.destroyed) return void instance.destroy()
      edge.write('ok\n' satisfies `${Reply}\n`)
      pipeBothWays(edge, instance)
    } catch (error) {
      if (edge.destroyed) return
      reply(error instanceof ServerUnavailable ? `unavailable ${error.message.split('\n', 1)[0]}` : 'unreachable')
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const edge of connections) edge.destroy()
      await closed
    },
  }
}

/** Reads the first line of a connection. The peer sends nothing else before the reply. */
function readLine(socket: TLSSocket, act: (line: string) => void): void {
  let text = ''
  const timer = setTimeout(() => socket.destroy(), handshakeTimeoutMs)
  const read = (chunk: Buffer) => {
    text += chunk.toString('latin1')
    if (!text.endsWith('\n')) return text.length > maxLineLength ? void socket.destroy() : undefined
    clearTimeout(timer)
    socket.off('data', read)
    socket.pause()
    act(text.slice(0, -1))
  }
  socket.on('data', read)
  socket.once('close', () => clearTimeout(timer))
}

function pipeBothWays(edge: TLSSocket, instance: Socket): void {
  for (const [one, other] of [
    [edge, instance],
    [instance, edge],
  ] as const) {
    one.setNoDelay(true)
    one.on('error', () => other.destroy())
    // Data sent before the close is still delivered.
    one.on('close', () => other.destroySoon())
    one.pipe(other)
  }
}
