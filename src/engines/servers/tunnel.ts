// Proxies an upgrade request to a server; after its 101 the bytes of both sides are passed on unchanged.
import { type IncomingMessage, request as send } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createConnectionBy } from '../../sandbox/connect.ts'
import { NotReached, sendFailureTo } from './failures.ts'
import { headersForServer, headersForVisitor } from './headers.ts'
import type { Upstream } from './instance.ts'

// TCP keep-alive finds visitors whose network is gone.
const keepAliveMs = 60_000

export function tunnel(
  { request, socket, head }: { request: IncomingMessage; socket: Duplex; head: Buffer },
  instance: Upstream,
  { stallMs, again }: { stallMs: number; again(error: Error): boolean },
): void {
  if (socket.destroyed) return
  const upstream = send({
    createConnection: createConnectionBy(instance.connect),
    method: request.method,
    ...headersForServer(request, 'upgrade'),
    timeout: stallMs,
  })
  let answered = false
  const done = instance.begin('tunnel', () => {
    upstream.destroy()
    socket.destroy()
  })
  const leave = () => {
    upstream.destroy()
    done()
  }
  socket.once('close', leave)
  socket.on('error', () => socket.destroy())
  upstream.on('timeout', () => {
    if (answered) return
    answered = true
    upstream.destroy()
    sendFailureTo(socket, 504)
  })
  upstream.on('error', (error) => {
    if (answered) return
    answered = true
    const unsent = error instanceof NotReached
    if (unsent && !socket.destroyed && again(error)) {
      socket.off('close', leave)
      return done()
    }
    sendFailureTo(socket, unsent ? error.status : 502)
  })
  upstream.on('upgrade', (answer: IncomingMessage, server: Socket, first: Buffer) => {
    answered = true
    socket.write(headOf(answer, pairsOf(answer.rawHeaders)))
    if (first.length > 0) socket.write(first)
    if (head.length > 0) server.write(head)
    join(socket, server)
  })
  // The server answers with plain HTTP, for example to refuse the visitor.
  upstream.on('response', (answer) => {
    answered = true
    socket.write(
      headOf(answer, [
        ...pairsOf(headersForVisitor(answer.rawHeaders, answer.headers.connection)),
        ['connection', 'close'],
      ]),
    )
    answer.on('error', () => socket.destroy())
    answer.pipe(socket)
  })
  upstream.end()
}

function pairsOf(raw: string[]): [string, string][] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1]!] satisfies [string, string]] : []))
}

function headOf({ statusCode, statusMessage }: IncomingMessage, headers: [string, string][]): Buffer {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join('')}\r\n`, 'latin1')
}

function join(visitor: Duplex, server: Socket): void {
  for (const [one, other] of [
    [visitor, server],
    [server, visitor],
  ] as const) {
    if (one instanceof Socket) {
      one.setTimeout(0)
      one.setNoDelay(true)
      one.setKeepAlive(true, keepAliveMs)
    }
    one.on('error', () => other.destroy())
    // Data that was sent before the close is still delivered.
    one.on('close', () => (other instanceof Socket ? other.destroySoon() : other.end()))
    one.pipe(other)
  }
}
