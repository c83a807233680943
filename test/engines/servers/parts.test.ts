import { createHash, randomBytes } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import { createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Http2Request, Http2Response } from '../../../src/engines/edge/serve/http2-messages.ts'
import type { Upstream } from '../../../src/engines/servers/instance/instance.ts'
import { createPool } from '../../../src/engines/servers/instance/pool.ts'
import { forward } from '../../../src/engines/servers/proxy/proxy.ts'
import { connectTo } from '../../../src/sandbox/network/connect.ts'
import type { Connect } from '../../../src/sandbox/sandbox.ts'

// The parts of all answers are read into one buffer and copied into buffers that are used again.
const bodies = Array.from({ length: 4 }, () => randomBytes(3 << 20))
const hashOf = (body: Buffer) => createHash('sha256').update(body).digest('hex')

const program = createServer((request, response) => {
  const body = bodies[Number(request.url!.slice(1))]!
  if (request.headers['x-length']) response.setHeader('content-length', body.length)
  for (let at = 0; at < body.length; at += 77_777) response.write(body.subarray(at, at + 77_777))
  response.end()
})
const connect: Connect = (options) => connectTo({ host: '127.0.0.1', port: portOf(program), ...options })
const upstream: Upstream = { connect, pool: createPool(connect), begin: () => () => {} }
const options = { stallMs: 20_000, isRunning: () => true, checkForCrash: () => {}, retry: () => false }
const handle: RequestListener = (request, response) => forward(request, response, upstream, options)
const front = createServer(handle)
const front2 = createHttp2Server(
  { Http2ServerRequest: Http2Request, Http2ServerResponse: Http2Response },
  handle as never,
)
const servers = [program, front, front2] as Server[]
const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port

beforeAll(async () => {
  for (const server of servers) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  upstream.pool.close()
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
})

/** Reads in many turns of the loop, so that the answers of all visitors are under way together. */
async function read(answer: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256')
  for await (const part of answer) {
    hash.update(part)
    for (let i = 0; i < 5; i++) await turn()
  }
  return hash.digest('hex')
}

test.each([{}, { 'x-length': '1' }])('many answers at once arrive as they were sent: %j', async (headers) => {
  const session = connectHttp2(`http://127.0.0.1:${portOf(front2)}`)
  let maxListeners = 0
  const note = (stream: EventEmitter) =>
    stream.on('newListener', () => {
      maxListeners = Math.max(maxListeners, stream.listenerCount('timeout'))
    })
  front2.on('stream', note)
  const visits = bodies.flatMap((_, index) => [
    new Promise<IncomingMessage>((resolve) =>
      get({ port: portOf(front), path: `/${index}`, agent: false, headers }, resolve),
    ).then(read),
    read(session.request({ ':path': `/${index}`, ':authority': 'a.example', ...headers })),
  ])
  expect(await Promise.all(visits)).toEqual(bodies.flatMap((body) => [hashOf(body), hashOf(body)]))
  // A visitor who reads slowly is waited for many times, by one listener.
  expect(maxListeners).toBeLessThan(5)
  session.close()
  front2.off('stream', note)
})
