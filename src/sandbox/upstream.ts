// Asks the DNS servers of this machine on behalf of a sandbox; a wrong or late packet costs nothing but its own question.
import { Buffer } from 'node:buffer'
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { getServers } from 'node:dns'
import { connect, isIP } from 'node:net'
import { clearTimeout, setTimeout } from 'node:timers'
import { ask, isAnswerTo, isTruncated, type Question, RCODE, rcodeOf } from './packets.ts'

export type Upstream = { address: string; port: number }

/** Of one question, all servers and tries together; clients ask again after five seconds. */
const DEADLINE_MS = 5000
const TRY_MS = 1500

/** Each `address[:port]`, an IPv6 address with a port in brackets; none: those of the system. */
export function readServers(configured: readonly string[]): Upstream[] {
  return (configured.length > 0 ? configured : getServers()).flatMap((text) => {
    if (isIP(text)) return [{ address: text, port: 53 }]
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? []
    const address = bracketed ?? plain ?? ''
    return isIP(address) ? [{ address, port: Number(digits ?? 53) }] : []
  })
}

/** The first good answer as it came; undefined when no server gave one in time. Never rejects. */
export async function askUpstream(servers: Upstream[], question: Question): Promise<Buffer | undefined> {
  const deadline = Date.now() + DEADLINE_MS
  let complaint: Buffer | undefined
  // A lost packet is asked for again once every server had its turn.
  for (const server of [...servers, ...servers]) {
    const leftMs = Math.min(TRY_MS, deadline - Date.now())
    if (leftMs <= 0) break
    const answer = await askServer(server, question, leftMs)
    if (answer === undefined) continue
    if (rcodeOf(answer) !== RCODE.serverFailure && rcodeOf(answer) !== RCODE.refused) return answer
    if (complaint !== undefined) break
    complaint = answer
  }
  return complaint
}

async function askServer(server: Upstream, question: Question, timeoutMs: number): Promise<Buffer | undefined> {
  const id = randomInt(0x10000)
  const answer = await askByUdp(server, question, id, timeoutMs)
  return answer && isTruncated(answer) ? askByTcp(server, question, id, timeoutMs) : answer
}

function askByUdp(server: Upstream, question: Question, id: number, timeoutMs: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    // A socket for each question, so that its port is as hard to guess as its id.
    const socket = createSocket(isIP(server.address) === 4 ? 'udp4' : 'udp6')
    const end = (answer?: Buffer) => {
      clearTimeout(timer)
      socket.removeAllListeners('message')
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(end, timeoutMs)
    socket.once('error', () => end())
    socket.on('message', (packet) => isAnswerTo(packet, question, id) && end(packet))
    // Connected: the kernel drops what others send.
    socket.connect(server.port, server.address, () => socket.send(ask(question, id)))
  })
}

function askByTcp(server: Upstream, question: Question, id: number, timeoutMs: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: server.address, port: server.port })
    let received = Buffer.alloc(0)
    let answer: Buffer | undefined
    const timer = setTimeout(() => socket.destroy(), timeoutMs)
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(answer)
    })
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const packet = unframe(received)
      if (packet === undefined) return
      if (isAnswerTo(packet, question, id)) answer = packet
      socket.destroy()
    })
    socket.write(frame(ask(question, id)))
  })
}

/** As DNS goes over streams: two octets of length before each packet. */
export function frame(packet: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(2 + packet.length)
  framed.writeUInt16BE(packet.length)
  packet.copy(framed, 2)
  return framed
}

/** The first packet, if all of it has come. */
export function unframe(received: Buffer): Buffer | undefined {
  if (received.length < 2) return undefined
  const end = 2 + received.readUInt16BE()
  return received.length < end ? undefined : received.subarray(2, end)
}
