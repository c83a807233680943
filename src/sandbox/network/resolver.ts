// The name server of one sandbox, on a unix socket: it answers with public addresses only.
import { Buffer } from 'node:buffer'
import type { LookupAddress } from 'node:dns'
import { createServer, type Socket } from 'node:net'
import { frame, unframe } from '../../dns/packet/message.ts'
import { rcodes } from '../../dns/packet/numbers.ts'
import type { Boundary } from './addresses.ts'
import { addressesIn, addressQuestion, readQuestion, reply, screen } from './packets.ts'
import { askUpstream, type Upstream } from './upstream.ts'

export type Resolver = { close(): Promise<void> }

/** Highest number of questions in flight per run; each holds a socket of the host. */
const MAX_QUESTIONS = 64
// More than questions, so that idle connections do not block questions.
const MAX_CONNECTIONS = 128
const IDLE_MS = 10_000

/** Not by getaddrinfo, which would occupy the few threads of Node's thread pool. */
export async function openResolver(socketPath: string, servers: Upstream[], boundary: Boundary): Promise<Resolver> {
  const sockets = new Set<Socket>()
  let underWay = 0

  async function answerTo(packet: Buffer): Promise<Buffer | undefined> {
    const question = readQuestion(packet)
    if (question === undefined || 'answer' in question) return question?.answer
    if (underWay >= MAX_QUESTIONS) return reply(question, rcodes.SERVFAIL)
    underWay++
    const answer = await askUpstream(servers, question).finally(() => underWay--)
    return answer ? screen(answer, question, boundary.crosses) : reply(question, rcodes.SERVFAIL)
  }

  /** One question after the other; the next one only when the answer before was read. */
  async function serve(socket: Socket): Promise<void> {
    let received = Buffer.alloc(0)
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk])
      for (let packet = unframe(received); packet !== undefined; packet = unframe(received)) {
        received = received.subarray(2 + packet.length)
        const answer = await answerTo(packet)
        if (answer === undefined) return
        await new Promise((resolve) => socket.write(frame(answer), resolve))
      }
    }
  }

  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    socket.setTimeout(IDLE_MS, () => socket.destroy())
    serve(socket)
      .catch(() => {})
      .finally(() => socket.destroySoon())
  })
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socketPath, resolve))
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** The public addresses of a name, for the proxy; empty when it has none. */
export async function lookupPublic(host: string, servers: Upstream[], boundary: Boundary): Promise<LookupAddress[]> {
  const question = addressQuestion(host)
  const answer = question && (await askUpstream(servers, question))
  if (!question || !answer) throw new Error('no server answered')
  return addressesIn(screen(answer, question, boundary.crosses), question).map((address) => ({ address, family: 4 }))
}
