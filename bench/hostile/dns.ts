// Hostile messages to the nameserver, and zone files to the API.
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { createDnsClient } from '../dns/client.ts'
import * as payloads from './payloads.ts'
import { type Send, type Surface, surface } from './surface.ts'
import { exchange, head, outcome, repeat, writeAll } from './wire.ts'

const framed = (message: Buffer) => Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message])

/** Repeats a message on one connection. */
function overTcp(message: (name: string) => Buffer): Send {
  return async ({ dnsPort, dnsName, bytes }) => {
    const socket = connect(dnsPort, '127.0.0.1')
    const ended = outcome(socket)
    await writeAll(socket, repeat(framed(message(dnsName)), bytes))
    if (!socket.destroyed) socket.end()
    return ended
  }
}

const packetBytes = 64

/** Over UDP, where every message costs a packet, however long it is; ends when a following query is answered. */
function overUdp(message: (name: string) => Buffer): Send {
  return async ({ dnsPort, dnsName, bytes }) => {
    const socket = createSocket('udp4')
    const one = message(dnsName)
    const count = Math.floor(bytes / packetBytes)
    for (let sent = 0; sent < count; sent++) {
      const isLast = sent % 64 === 63
      await new Promise<void>((resolve) => {
        socket.send(one, dnsPort, '127.0.0.1', () => resolve())
        if (!isLast) resolve()
      })
    }
    socket.close()
    const dnsClient = await createDnsClient(dnsPort)
    const answer = (await dnsClient.query(dnsName, 'A', 10_000)) === null ? 'unanswered' : 'answered'
    dnsClient.close()
    return answer
  }
}

/** Dry runs, so that each reads the same zone. */
const file =
  (line: string | ((number: number) => string)): Send =>
  ({ apiPort, token, zone, bytes }) => {
    const content = Buffer.from(payloads.zoneText(line, bytes))
    const headers = [
      'Connection: close',
      `Authorization: Bearer ${token}`,
      'Content-Type: text/dns',
      `Content-Length: ${content.length}`,
    ]
    const requestHead = head({ method: 'PUT', path: `/api/dns/${zone}/zone?dryRun=true`, host: 'localhost', headers })
    return exchange(apiPort, requestHead, content)
  }

export const dns: Surface = surface(payloads.messages, overTcp)
export const packets: Surface = surface(payloads.messages, overUdp)
export const zoneFiles: Surface = surface(payloads.zoneFiles, file)
