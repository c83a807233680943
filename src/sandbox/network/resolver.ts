// A sandbox's name server on a unix socket, which only returns public addresses.
import { Buffer } from 'node:buffer'
import type { LookupAddress } from 'node:dns'
import { createServer, type Socket } from 'node:net'
import { frame, unframe } from '../../dns/packet/message.ts'
import { rcodes } from '../../dns/packet/numbers.ts'
import type { Boundary } from './addresses.ts'
import { addressesIn, addressQuestion, readQuestion, reply, screen } from './packets.ts'
import { askUpstream, type Upstream } from './upstream.ts'

export type Resolver = { close(): Promise<void> }

/** Questions in progress per run; each uses a socket of the host. */
const MAX_QUESTIONS = 64
// More than MAX_QUESTIONS, so that idle connections don't block questions.
const MAX_CONNECTIONS = 128
const IDLE_MS = 10_000

/** Doesn't use getaddrinfo, which would occupy Node's few pool threads. */
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

  /** Answers one question at a time, and waits until each answer was read. */
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

/** The public addresses of a name, for the proxy. */
export async function lookupPublic(host: string, servers: Upstream[], boundary: Boundary): Promise<LookupAddress[]> {
  const question = addressQuestion(host)
  const answer = question && (await askUpstream(servers, question))
  if (!question || !answer) throw new Error('no server answered')
  return addressesIn(screen(answer, question, boundary.crosses), question).map((address) => ({ address, family: 4 }))
}
