// DNS over TCP (RFC 7766): length-prefixed messages, several per connection, with an idle timeout.
import { createServer, type Socket } from 'node:net'
import type { ListenAddress } from '../../../dns/listen-address.ts'
import type { NameserverMetrics } from '../answer/metrics.ts'
import type { Peer } from '../answer/without-zones.ts'
import type { Channel, Responder } from './responder.ts'

export type TcpListener = { port: number; close(): Promise<void> }

export type TcpLimits = { idleMs: number; connections: number; connectionsPerAddress: number; inFlight: number }

const defaultLimits: TcpLimits = {
  idleMs: 10_000,
  connections: 1_000,
  // A resolver needs one or two; a large one behind a single address needs some more.
  connectionsPerAddress: 100,
  inFlight: 16,
}

// Below this size, copying takes less time than passing a second buffer to the kernel.
const copiedOctets = 4_096

/** Returns false if the socket's buffer is full. */
function write(socket: Socket, answer: Uint8Array): boolean {
  const length = Buffer.from([answer.length >> 8, answer.length & 0xff])
  if (answer.length <= copiedOctets) return socket.write(Buffer.concat([length, answer]))
  socket.cork()
  socket.write(length)
  const hasCapacity = socket.write(answer)
  socket.uncork()
  return hasCapacity
}

/** Reads, answers and writes on one connection until either side ends it. */
function serve(socket: Socket, responder: Responder, limits: TcpLimits): void {
  const peer: Peer = { address: socket.remoteAddress ?? '', port: socket.remotePort ?? 0 }
  let received: Buffer = Buffer.alloc(0)
  let inFlight = 0
  let ended = false
  let deadline: NodeJS.Timeout | undefined
  let closing: AbortController | null = null
  let leaving: AbortController | null = null

  const channel: Channel = {
    tcp: true,
    // Created on demand, because few messages need it.
    get signal() {
      closing ??= new AbortController()
      if (socket.destroyed) closing.abort()
      return closing.signal
    },
    get leaving() {
      leaving ??= new AbortController()
      if (ended || socket.destroyed) leaving.abort()
      return leaving.signal
    },
    async send(answer) {
      if (socket.destroyed || write(socket, answer)) return
      await new Promise<void>((resolve) => {
        const done = () => {
          socket.off('drain', done).off('close', done)
          resolve()
        }
        socket.once('drain', done).once('close', done)
      })
    },
  }

  // Reading pauses while a client has too many queries in flight or doesn't read its answers.
  function isFull(): boolean {
    return inFlight >= limits.inFlight || socket.writableNeedDrain
  }

  function work(): void {
    while (!isFull() && received.length >= 2) {
      const end = 2 + received.readUInt16BE(0)
      if (received.length < end) break
      const message = received.subarray(2, end)
      received = received.subarray(end)
      clearTimeout(deadline)
      deadline = undefined
      const answer = responder.respond(message, peer, channel)
      if (answer instanceof Uint8Array) write(socket, answer)
      else if (answer) {
        inFlight++
        answer.then(() => {
          inFlight--
          work()
        })
      }
    }
    if (isFull()) socket.pause()
    else {
      socket.resume()
      // A message has a deadline: single octets now and then would defeat the idle timeout.
      if (received.length > 0) deadline ??= setTimeout(() => socket.destroy(), limits.idleMs)
      if (ended && inFlight === 0) socket.end()
    }
  }

  socket.setNoDelay(true)
  socket.setTimeout(limits.idleMs, () => {
    // If there is nothing for the client to read, the server is the slow one.
    if (inFlight > 0 && socket.writableLength === 0) socket.setTimeout(limits.idleMs)
    else socket.destroy()
  })
  socket.on('data', (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    work()
  })
  socket.on('drain', work)
  socket.on('end', () => {
    ended = true
    leaving?.abort()
    work()
  })
  socket.on('error', () => socket.destroy())
  socket.on('close', () => {
    clearTimeout(deadline)
    closing?.abort()
    leaving?.abort()
  })
}

export async function listenTcp(
  { host, port }: ListenAddress,
  responder: Responder,
  metrics: NameserverMetrics,
  overrides: Partial<TcpLimits> = {},
): Promise<TcpListener> {
  const limits = { ...defaultLimits, ...overrides }
  const sockets = new Set<Socket>()
  const perAddress = new Map<string, number>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const address = socket.remoteAddress ?? ''
    const count = perAddress.get(address) ?? 0
    if (sockets.size >= limits.connections || count >= limits.connectionsPerAddress) {
      metrics.drop('connections')
      return socket.destroy()
    }
    sockets.add(socket)
    perAddress.set(address, count + 1)
    socket.on('close', () => {
      sockets.delete(socket)
      const left = perAddress.get(address)! - 1
      if (left === 0) perAddress.delete(address)
      else perAddress.set(address, left)
    })
    serve(socket, responder, limits)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, ipv6Only: true }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return {
    port: (server.address() as { port: number }).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
