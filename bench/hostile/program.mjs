// A customer's server that says whatever bytes it is asked to, to the visitor or to its log, and swallows what it is sent.
import { createServer } from 'node:http'

/** @param {{ head?: string, piece: string, times: number, tail?: string, to: 'visitor' | 'log' }} order */
function bytesOf({ head = '', piece, times, tail = '' }) {
  const one = Buffer.from(piece, 'latin1')
  return Buffer.concat([
    Buffer.from(head, 'latin1'),
    Buffer.alloc(one.length * times, one),
    Buffer.from(tail, 'latin1'),
  ])
}

const server = createServer(async (request, response) => {
  const parts = []
  try {
    for await (const part of request) if (request.url === '/say') parts.push(part)
  } catch {
    // The visitor left. A crash would make the next shapes wait until the runner starts the program again.
    return
  }
  if (request.url !== '/say') return void response.end('ok')
  const order = JSON.parse(Buffer.concat(parts).toString())
  if (order.to === 'visitor') request.socket.end(bytesOf(order))
  else process.stdout.write(bytesOf(order), () => response.end('printed'))
})

// Not a word of WebSocket: it takes as many bytes as the address says, or sends what the address says.
server.on('upgrade', (request, socket) => {
  const { pathname, searchParams } = new URL(request.url, 'http://server')
  socket.on('error', () => {})
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  const times = Number(searchParams.get('times'))
  const piece = Buffer.from(searchParams.get('piece') ?? '', 'hex')
  if (pathname === '/send') return void socket.end(Buffer.alloc(piece.length * times, piece))
  let left = times
  socket.on('data', (part) => {
    left -= part.length
    if (left <= 0) socket.end()
  })
})

server.listen(Number(process.env.PORT))
