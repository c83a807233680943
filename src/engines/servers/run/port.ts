// The port of a runner: edges that show a certificate of this installation are connected to its instances.
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { nodeUri } from '../../../tls/internal-ca.ts'
import type { NodeCredentials } from '../../../tls/node-credentials.ts'
import { maxReplyLength, protocol, pulseLine, type Reply } from '../instance/dial.ts'
import { ServerUnavailable } from '../instance/failures.ts'

export type PortOptions = {
  host: string
  port: number
  credentials: Pick<NodeCredentials, 'follow'>
  /** A connection to an instance; null if this node does not have it. */
  connect(key: string): Promise<Socket | null>
  log: Logger
}

export type RunnerPort = { port: number; close(): Promise<void> }

// A stranger holds a connection no longer than this.
const handshakeMs = 5_000
const maxLineLength = 200
const keepAliveMs = 30_000

export async function openRunnerPort({ host, port, credentials, connect, log }: PortOptions): Promise<RunnerPort> {
  const open = new Set<TLSSocket>()
  const server = createServer({
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    ALPNProtocols: [protocol],
    handshakeTimeout: handshakeMs,
  })
  credentials.follow(({ cert, key, ca }) => server.setSecureContext({ cert, key, ca, minVersion: 'TLSv1.3' }))
  server.on('tlsClientError', (err, socket) => {
    log.warn({ reason: err.message, from: socket.remoteAddress }, 'a connection to the runner was refused')
  })
  server.on('secureConnection', (edge) => {
    open.add(edge)
    // An edge whose machine is gone closes nothing.
    edge.setKeepAlive(true, keepAliveMs)
    edge.on('close', () => open.delete(edge))
    edge.on('error', () => edge.destroy())
    // The purpose in the certificate says it too, and is checked by TLS.
    const isEdge = edge.getPeerX509Certificate()?.subjectAltName?.startsWith(`URI:${nodeUri('edge', '')}`)
    if (!edge.authorized || !isEdge || edge.alpnProtocol !== protocol) return void edge.destroy()
    readLine(edge, (key) => void serve(edge, key))
  })

  async function serve(edge: TLSSocket, key: string): Promise<void> {
    const reply = (text: Reply) => void edge.end(`${text.replaceAll('\n', ' ').slice(0, maxReplyLength - 1)}\n`)
    if (key === pulseLine) {
      edge.write('ok\n' satisfies `${Reply}\n`)
      return void edge.pipe(edge)
    }
    try {
      const instance = await connect(key)
      if (!instance) return reply('gone')
      if (edge.destroyed) return void instance.destroy()
      edge.write('ok\n' satisfies `${Reply}\n`)
      join(edge, instance)
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
      for (const edge of open) edge.destroy()
      await closed
    },
  }
}

/** The first line of a connection. Nothing follows it before it is answered. */
function readLine(socket: TLSSocket, act: (line: string) => void): void {
  let text = ''
  const timer = setTimeout(() => socket.destroy(), handshakeMs)
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

function join(edge: TLSSocket, instance: Socket): void {
  for (const [one, other] of [
    [edge, instance],
    [instance, edge],
  ] as const) {
    one.setNoDelay(true)
    one.on('error', () => other.destroy())
    // What was sent before the close is still delivered.
    one.on('close', () => other.destroySoon())
    one.pipe(other)
  }
}
