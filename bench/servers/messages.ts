// WebSockets that send a message and wait for its echo, as often as they can; a separate process.
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerParent } from '../children.ts'
import { maxSliceSeconds } from '../slices.ts'

export type MessageLoad = { port: number; host: string; connections: number; seconds: number }

const message = Buffer.alloc(64, 'm')
const frameBytes = 2 + message.length
const mask = Buffer.from([1, 2, 3, 4])
const frame = Buffer.concat([
  Buffer.from([0x82, 0x80 | message.length]),
  mask,
  message.map((byte, i) => byte ^ mask[i % 4]!),
])

async function join(port: number, host: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const lines = [`GET /socket HTTP/1.1`, `Host: ${host}`, 'Connection: Upgrade', 'Upgrade: websocket']
  lines.push('Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', '')
  socket.write(lines.join('\r\n'))
  let head = ''
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject).on('close', () => reject(new Error(`no WebSocket: ${head}`)))
    socket.on('data', (octets) => {
      head += octets.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      if (head.startsWith('HTTP/1.1 101 ')) resolve()
      else reject(new Error(`no WebSocket: ${head}`))
    })
  })
  socket.removeAllListeners('data').removeAllListeners('close')
  return socket
}

/** Echoes per second. */
async function measure({ port, host, connections, seconds }: MessageLoad): Promise<number> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => join(port, host)))
  let echoes = 0
  for (const socket of sockets) {
    let missing = frameBytes
    socket.on('data', (octets) => {
      missing -= octets.length
      if (missing > 0) return
      if (missing < 0) throw new Error('an echo is longer than its message')
      missing = frameBytes
      echoes++
      socket.write(frame)
    })
    socket.write(frame)
  }
  const startedMs = performance.now()
  await sleep(seconds * 1000)
  while (echoes === 0) {
    if (performance.now() - startedMs > maxSliceSeconds * 1000) throw new Error(`no echo came from port ${port}`)
    await sleep(50)
  }
  const perSecond = (echoes * 1000) / (performance.now() - startedMs)
  for (const socket of sockets) socket.destroy()
  return perSecond
}

answerParent(measure, async () => {})
