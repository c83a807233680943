// Readers of the event stream over plain sockets, a separate process: opened, counted and closed on demand.
import { connect, type Socket } from 'node:net'
import { answerParent } from '../children.ts'

export type Reading = { open: number; port: number; tokens: string[] } | 'events' | 'close'

const sockets: Socket[] = []
let events = 0

function open(port: number, token: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', reject)
    socket.write(
      `GET /api/events HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\naccept: text/event-stream\r\n\r\n`,
    )
    let head = ''
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1')
      if (head !== 'read') {
        head += text
        if (!head.includes('retry:')) return
        if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(head.split('\r\n')[0]))
        head = 'read'
        resolve()
      }
      events += text.split('\nevent: ').length - 1
    })
    sockets.push(socket)
  })
}

answerParent(
  async (question: Reading) => {
    if (question === 'events') return events
    if (question === 'close') {
      for (const socket of sockets.splice(0)) socket.destroy()
      return 0
    }
    const { port, tokens } = question
    for (let n = 0; n < question.open; n += 50) {
      const batch = Array.from({ length: Math.min(50, question.open - n) }, (_, i) => tokens[(n + i) % tokens.length]!)
      await Promise.all(batch.map((token) => open(port, token)))
    }
    return sockets.length
  },
  async () => {
    for (const socket of sockets) socket.destroy()
  },
)
