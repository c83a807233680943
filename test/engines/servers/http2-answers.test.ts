import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Http2Request, Http2Response } from '../../../src/engines/edge/serve/http2-messages.ts'
import type { Upstream } from '../../../src/engines/servers/instance/instance.ts'
import { createPool } from '../../../src/engines/servers/instance/pool.ts'
import { forward } from '../../../src/engines/servers/proxy/proxy.ts'
import { connectTo } from '../../../src/sandbox/network/connect.ts'
import type { Connect } from '../../../src/sandbox/sandbox.ts'
import { ask } from '../edge/https-world.ts'

let answer = ''
const program = createServer((socket) => {
  socket.on('error', () => {})
  socket.on('data', () => socket.write(answer, 'latin1'))
})
const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port
const connect: Connect = (options) => connectTo({ host: '127.0.0.1', port: portOf(program), ...options })
const upstream: Upstream = { connect, pool: createPool(connect), begin: () => () => {} }
const options = { stallMs: 20_000, isRunning: () => true, checkForCrash: () => {}, retry: () => false }
const front = createHttp2Server({ Http2ServerRequest: Http2Request, Http2ServerResponse: Http2Response }, ((
  request: never,
  response: never,
) => forward(request, response, upstream, options)) as never)

beforeAll(async () => {
  for (const server of [program, front]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  upstream.pool.close()
  await Promise.all([program, front].map((server) => new Promise((resolve) => server.close(resolve))))
})

async function visit(head: string, method = 'GET') {
  answer = `${head}\r\ncontent-length: 2\r\n\r\nok`
  const session = connectHttp2(`http://127.0.0.1:${portOf(front)}`)
  try {
    return await ask(session, { ':path': '/', ':authority': 'a.example', ':method': method })
  } finally {
    session.close()
  }
}

test.each([
  ['http2-settings', 'AAMAAABk'],
  ['keep-alive', 'timeout=5'],
  ['proxy-connection', 'close'],
  ['te', 'gzip'],
  ['upgrade', 'h2c'],
])('a server’s %s, which HTTP/2 does not have, is left out', async (name, value) => {
  const { status, headers, text } = await visit(`HTTP/1.1 200 OK\r\n${name}: ${value}`)
  expect({ status, text }).toEqual({ status: 200, text: 'ok' })
  expect(headers).not.toHaveProperty(name)
})

test('a header that a server sends twice comes as one, except cookies', async () => {
  const lines = ['Content-Type: text/plain', 'content-type: text/html', 'ETag: "a"', 'etag: "b"', 'x: 1', 'x: 2']
  const { headers } = await visit(['HTTP/1.1 200 OK', ...lines, 'Set-Cookie: a=1', 'set-cookie: b=2'].join('\r\n'))
  expect(headers).toMatchObject({ 'content-type': 'text/plain, text/html', etag: '"a", "b"', x: '1, 2' })
  expect(headers['set-cookie']).toEqual(['a=1', 'b=2'])
})

test.each([600, 999])('a status that HTTP/2 does not have, %i, is a 502', async (status) => {
  expect((await visit(`HTTP/1.1 ${status} Odd`)).status).toBe(502)
  expect((await visit('HTTP/1.1 200 OK')).status).toBe(200)
})

test.each([
  ['204 No Content', 'GET', undefined],
  ['204 No Content', 'HEAD', undefined],
  ['304 Not Modified', 'GET', '2'],
  ['200 OK', 'HEAD', '2'],
])('an answer without a body, %s to %s, arrives with the length it may have', async (status, method, length) => {
  const { headers, text, ...answer } = await visit(`HTTP/1.1 ${status}`, method)
  expect({ status: answer.status, text }).toEqual({ status: Number.parseInt(status, 10), text: '' })
  expect(headers['content-length']).toBe(length)
})
