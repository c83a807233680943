// The minimum cost of Node's UDP sockets: echoes packets on as many threads as processors.
import { createSocket } from 'node:dgram'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const { port, threads } = isMainThread
  ? { port: Number(process.argv[2]), threads: Number(process.argv[3]) }
  : (workerData as { port: number; threads: number })
if (isMainThread) {
  for (let thread = 1; thread < threads; thread++) {
    new Worker(new URL(import.meta.url), { workerData: { port, threads } })
  }
}
const socket = createSocket({
  type: 'udp4',
  reusePort: threads > 1,
  lookup: (address, _options, done) => done(null, address, 4),
})
socket.on('message', (message, peer) => {
  // Marks the packet as an authoritative response.
  message[2] = message[2]! | 0x84
  socket.send(message, peer.port, peer.address)
})
socket.bind(port, '127.0.0.1')
