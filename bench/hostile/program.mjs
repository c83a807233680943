// A customer's server that sends any requested bytes to the visitor or its log, and discards what it receives.
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
    // The visitor left. After a crash, the next shapes would wait for the runner to restart the program.
    return
  }
  if (request.url !== '/say') return void response.end('ok')
  const order = JSON.parse(Buffer.concat(parts).toString())
  if (order.to === 'visitor') request.socket.end(bytesOf(order))
  else process.stdout.write(bytesOf(order), () => response.end('printed'))
})

// No WebSocket protocol: receives as many bytes as the URL says, or sends what the URL says.
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
