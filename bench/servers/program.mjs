// The measured server project: a bare Node server with a response for each kind of load.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'

const page = Buffer.alloc(2 << 10, 'a page ')
const large = Buffer.alloc(1 << 20, 'a large answer ')
const event = `data: ${'x'.repeat(92)}\n\n`

const server = createServer((request, response) => {
  if (request.url === '/upload') {
    let bytes = 0
    request.on('data', (part) => {
      bytes += part.length
    })
    request.on('end', () => response.end(String(bytes)))
  } else if (request.url === '/large') {
    response.setHeader('content-length', large.length)
    response.end(large)
  } else if (request.url === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let left = 100
    // Each event is a separate packet.
    const next = () => {
      response.write(event)
      if (--left > 0) setImmediate(next)
      else response.end()
    }
    next()
  } else {
    response.setHeader('content-length', page.length)
    response.setHeader('content-type', 'text/plain')
    response.end(page)
  }
})

// Echoes masked frames of less than 126 bytes, one at a time, which is all the benchmark sends.
server.on('upgrade', (request, socket) => {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
  socket.write([...lines, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n'))
  socket.setNoDelay(true)
  socket.on('error', () => {})
  // Half open, it would keep a proxy from shutting down until its timeout.
  socket.on('end', () => socket.end())
  socket.on('data', (frame) => {
    const body = Buffer.from(frame.subarray(6)).map((byte, i) => byte ^ frame[2 + (i % 4)])
    socket.write(Buffer.concat([Buffer.from([frame[0], body.length]), body]))
  })
})

server.listen(Number(process.env.PORT))
