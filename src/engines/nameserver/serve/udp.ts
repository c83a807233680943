// DNS over UDP: one packet, one answer.
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Logger } from 'pino'
import type { ListenAddress } from '../../../dns/listen-address.ts'
import type { NameserverMetrics } from '../answer/metrics.ts'
import type { Channel, Responder } from './responder.ts'

export type UdpListener = { port: number; close(): Promise<void> }

// Ports of services that answer any packet (echo, chargen and the like), and 0, which can't receive.
export const reflectingPorts = new Set([0, 7, 13, 17, 19, 37])
// Room for a burst while the process is busy, for example building a large zone.
const bufferOctets = 4 << 20

export async function listenUdp(
  { host, port }: ListenAddress,
  responder: Responder,
  metrics: NameserverMetrics,
  log: Logger,
): Promise<UdpListener> {
  const ipv6 = isIPv6(host)
  const socket: Socket = createSocket({
    type: ipv6 ? 'udp6' : 'udp4',
    // Otherwise [::] would take the port of 0.0.0.0 as well.
    ipv6Only: ipv6,
    // Peers are addresses already. The default lookup costs a turn of the event loop per packet.
    lookup: (address, _options, done) => done(null, address, ipv6 ? 6 : 4),
  })
  const channel: Channel = { tcp: false, send: (answer, peer) => send(answer, peer.port, peer.address) }
  let open = true

  function send(answer: Buffer, port: number, address: string): void {
    if (open) socket.send(answer, port, address)
  }

  socket.on('message', (message: Buffer, peer: RemoteInfo) => {
    if (reflectingPorts.has(peer.port)) return metrics.drop('source')
    const answer = responder.respond(message, peer, channel)
    if (answer instanceof Uint8Array) send(answer, peer.port, peer.address)
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(port, host, () => {
      socket.off('error', reject)
      resolve()
    })
  })
  // An answer that can't be sent only concerns one client, so it isn't worth a warning.
  socket.on('error', (err) => log.debug({ err }, 'a DNS answer could not be sent'))
  try {
    socket.setRecvBufferSize(bufferOctets)
    socket.setSendBufferSize(bufferOctets)
  } catch (err) {
    log.debug({ err }, 'the system keeps its own size of buffers')
  }
  return {
    port: socket.address().port,
    async close() {
      open = false
      await new Promise<void>((resolve) => socket.close(() => resolve()))
    },
  }
}
