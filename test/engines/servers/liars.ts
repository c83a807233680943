// A program that answers whatever bytes a test wants, behind the proxy; no sandbox and no supervisor.
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { isUpgrade } from '../../../src/engines/edge/serve/upgrades.ts'
import type { Instance } from '../../../src/engines/servers/instance/instance.ts'
import { createPool } from '../../../src/engines/servers/instance/pool.ts'
import { forward } from '../../../src/engines/servers/proxy/proxy.ts'
import { tunnel } from '../../../src/engines/servers/proxy/tunnel.ts'
import { CountedRequest, limitRequestCosts } from '../../../src/platform/http/request-intake.ts'
import { connectTo } from '../../../src/sandbox/network/connect.ts'
import type { Connect } from '../../../src/sandbox/sandbox.ts'

export type Liar = {
  port: number
  /** What the program got, by connection. */
  received: string[]
  sockets: Socket[]
  /** Requests and tunnels that are not over. */
  readonly open: number
  /** Connections of the edge that are open, with visitors and with the program. */
  readonly held: number
  /** Stops writes on the open connections of the edge on this port, as if nobody read them. */
  stopTaking(port: number): void
  /** To the program, since `answer`. */
  readonly writes: number
  /** How often it was suspected to have crashed. */
  readonly suspected: number
  /** The program's reaction to each piece of data that comes; `count` is that of the connection's pieces. */
  answer(react: (socket: Socket, text: string, count: number) => void): void
  /** Sends bytes to the edge; resolves with all that comes back until `end` matches, or the connection closes. */
  raw(bytes: string | string[], end?: RegExp): Promise<string>
  get(path?: string): Promise<string>
  /** Ends all requests and tunnels, as when another deployment takes over. */
  abort(): void
  /** Proxies a request of another server to the program. */
  handle(request: IncomingMessage, response: ServerResponse): void
  stop(): Promise<void>
}

export async function startLiar(stallMs = 10_000, closeMs = 2_000): Promise<Liar> {
  let react: (socket: Socket, text: string, count: number) => void = () => {}
  let suspected = 0
  const received: string[] = []
  const sockets: Socket[] = []
  const exchanges = new Set<{ abort(): void }>()
  const held = new Set<Socket>()
  const hold = (socket: Socket) => void held.add(socket.on('close', () => held.delete(socket)))
  const program = createServer((socket) => {
    const index = received.push('') - 1
    let count = 0
    sockets.push(socket)
    socket.setNoDelay(true).on('error', () => {})
    socket.on('data', (octets) => {
      const text = octets.toString('latin1')
      received[index] += text
      react(socket, text, ++count)
    })
  })
  await new Promise<void>((resolve) => program.listen(0, '127.0.0.1', resolve))
  const { port: programPort } = program.address() as AddressInfo
  let writes = 0
  const connectProgram: Connect = async (options) => {
    const socket = await connectTo({ host: '127.0.0.1', port: programPort, ...options })
    hold(socket)
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
    return Object.assign(socket, {
      write(...args: unknown[]) {
        writes++
        return write(...args)
      },
    })
  }
  const instance: Instance = {
    connect: connectProgram,
    pool: createPool(connectProgram),
    exchanges: 0,
    lastUsedMs: 0,
    receivedBytes: 0,
    responds: async () => true,
    touch: () => {},
    begin(_kind, abort) {
      const exchange = { abort }
      exchanges.add(exchange)
      return () => void exchanges.delete(exchange)
    },
    abort() {
      for (const { abort } of [...exchanges]) abort()
    },
    ended: new Promise(() => {}),
    kill: async () => {},
  }
  const options = { stallMs, closeMs, isRunning: () => true, checkForCrash: () => void suspected++, retry: () => false }
  const handle = (request: IncomingMessage, response: ServerResponse) => forward(request, response, instance, options)
  const front = createHttpServer({ shouldUpgradeCallback: isUpgrade, IncomingMessage: CountedRequest }, handle)
  front.on('upgrade', (request, socket, head) => tunnel({ request, socket, head }, instance, options))
  front.on('connection', hold)
  limitRequestCosts(front, 'connection')
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  const { port } = front.address() as AddressInfo
  const raw = (bytes: string | string[], end?: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      let text = ''
      for (const part of [bytes].flat()) socket.write(part, 'latin1')
      socket.on('error', (error: NodeJS.ErrnoException) =>
        error.code === 'ECONNRESET' ? resolve(text) : reject(error),
      )
      socket.on('close', () => resolve(text))
      socket.on('data', (octets) => {
        text += octets.toString('latin1')
        if (end?.test(text)) socket.destroy()
      })
    })
  return {
    port,
    received,
    sockets,
    get open() {
      return exchanges.size
    },
    get held() {
      return held.size
    },
    stopTaking(port) {
      // Without a callback, a write stays in progress for ever.
      for (const socket of held)
        if (socket.remotePort === port) Object.assign(socket, { _write: () => {}, _writev: () => {} })
    },
    get writes() {
      return writes
    },
    get suspected() {
      return suspected
    },
    answer(next) {
      react = next
      received.length = 0
      writes = 0
      instance.pool.close()
      instance.pool = createPool(connectProgram)
    },
    raw,
    handle,
    abort: () => instance.abort(['tunnel']),
    get: (path = '/') => raw(`GET ${path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`),
    async stop() {
      instance.pool.close()
      front.closeAllConnections()
      for (const socket of sockets) socket.destroy()
      await Promise.all([front, program].map((server) => new Promise((resolve) => server.close(resolve))))
    },
  }
}
