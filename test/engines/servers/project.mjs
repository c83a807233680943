// A server project for the tests: answers by its path, and speaks just enough WebSocket to echo.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'

const version = process.env.VERSION
let aborted = 0
let hanging = 0

const routes = {
  '/': (_request, response) => response.end(`hello from ${version}`),
  '/pid': (_request, response) => response.end(String(process.pid)),
  '/headers': (request, response) => {
    response.writeHead(201, [
      ...['Content-Type', 'application/json', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'],
      ...['Connection', 'keep-alive, X-Private', 'X-Private', 'hop', 'X-Public', 'yes'],
    ])
    response.end(JSON.stringify({ url: request.url, method: request.method, raw: request.rawHeaders }))
  },
  '/echo': (request, response) => request.pipe(response),
  '/large': (_request, response, query) => {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    let left = Number(query.get('chunks'))
    const more = () => {
      while (left-- > 0) if (!response.write(chunk)) return void response.once('drain', more)
      response.end()
    }
    more()
  },
  '/early': (_request, response) => {
    response.writeHead(413)
    response.end('too large')
  },
  '/hang': (request) => {
    hanging++
    request.on('close', () => aborted++)
  },
  '/endless': (request, response) => {
    const timer = setInterval(() => response.write('tick\n'), 10)
    request.on('close', () => {
      clearInterval(timer)
      aborted++
    })
  },
  '/events': (_request, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
  '/half': (_request, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('only this', () => process.exit(4))
  },
  '/aborted': (_request, response) => response.end(String(aborted)),
  '/hanging': (_request, response) => response.end(String(hanging)),
  '/crash': () => process.exit(3),
  '/held': (request, response) => {
    response.writeHead(200).flushHeaders()
    request.on('end', () => response.end(`held by ${version}`)).resume()
  },
  '/parts': (_request, response) => {
    let left = 5
    const timer = setInterval(() => {
      response.write(`${version} `)
      if (--left > 0) return
      clearInterval(timer)
      response.end(version)
    }, 2)
  },
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://server')
  const route = routes[pathname]
  if (route) return void route(request, response, searchParams)
  response.statusCode = 404
  response.end('no such page')
})

server.on('upgrade', (request, socket) => {
  if (request.url === '/forbidden') {
    socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\nconnection: close\r\n\r\nnot so')
    return
  }
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  let buffer = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    buffer = Buffer.concat([buffer, chunk])
    for (;;) {
      if (buffer.length < 2) return
      const short = buffer[1] & 0x7f
      const at = short === 127 ? 10 : short === 126 ? 4 : 2
      if (buffer.length < at + 4) return
      const length = short === 127 ? Number(buffer.readBigUInt64BE(2)) : short === 126 ? buffer.readUInt16BE(2) : short
      if (buffer.length < at + 4 + length) return
      const body = Buffer.from(buffer.subarray(at + 4, at + 4 + length)).map((byte, i) => byte ^ buffer[at + (i % 4)])
      // The frame as it came, without its mask.
      const head = Buffer.from(buffer.subarray(0, at))
      head[1] &= 0x7f
      socket.write(Buffer.concat([head, body]))
      if ((head[0] & 0x0f) === 8) socket.end()
      buffer = buffer.subarray(at + 4 + length)
    }
  })
})

server.listen(Number(process.env.PORT), () => console.log(`listening, the secret is ${process.env.API_KEY}`))
