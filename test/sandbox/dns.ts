// DNS for the tests of sandboxes: packets by hand, and an upstream server that answers as it is told.
import { Buffer } from 'node:buffer'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { frame, unframe } from '../../src/dns/packet/message.ts'

export type Entry = {
  section: 'answer' | 'authority' | 'additional'
  type: number
  data: Buffer
  /** As it is written; by default a pointer to the question's name. */
  name?: Buffer
}

export function questionPacket(
  name: string,
  type: number,
  { id = 1, size }: { id?: number; size?: number } = {},
): Buffer {
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)])
  const header = Buffer.from([id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, size ? 1 : 0])
  const options = size ? [Buffer.from([0, 0, 41, size >> 8, size & 255, 0, 0, 0, 0, 0, 0])] : []
  return Buffer.concat([header, ...labels, Buffer.from([0, type >> 8, type & 255, 0, 1]), ...options])
}

const questionEnd = (packet: Buffer) => {
  let at = 12
  while (packet[at]) at += packet[at]! + 1
  return at + 5
}

export function nameIn(packet: Buffer): string {
  const labels: string[] = []
  for (let at = 12; packet[at]; at += packet[at]! + 1)
    labels.push(packet.toString('latin1', at + 1, at + 1 + packet[at]!))
  return labels.join('.')
}

export function answerPacket(question: Buffer, entries: Entry[], rcode = 0): Buffer {
  const head = Buffer.from(question.subarray(0, questionEnd(question)))
  head[2] = 0x81
  head[3] = 0x80 | rcode
  for (const [index, section] of ['answer', 'authority', 'additional'].entries())
    head.writeUInt16BE(entries.filter((entry) => entry.section === section).length, 6 + 2 * index)
  const records = entries.map(({ type, data, name = Buffer.from([0xc0, 12]) }) =>
    Buffer.concat([
      name,
      Buffer.from([type >> 8, type & 255, 0, 1, 0, 0, 0, 1, data.length >> 8, data.length & 255]),
      data,
    ]),
  )
  return Buffer.concat([head, ...records])
}

export type Upstream = { address: string; asked: string[]; close(): void }

/** Answers A questions with these addresses over UDP and TCP, or with an error's number; undefined: not at all. */
export async function startUpstream(
  addressesOf: (name: string) => string[] | Buffer | number | undefined,
): Promise<Upstream> {
  const asked: string[] = []
  const respond = (question: Buffer): Buffer | undefined => {
    const name = nameIn(question)
    asked.push(name)
    const found = addressesOf(name)
    if (found === undefined || Buffer.isBuffer(found)) return found
    const entries = (typeof found === 'number' ? [] : found).map((address): Entry => {
      return { section: 'answer', type: 1, data: Buffer.from(address.split('.').map(Number)) }
    })
    return answerPacket(question, entries, typeof found === 'number' ? found : 0)
  }
  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      const answer = respond(unframe(chunk)!)
      if (answer) socket.write(frame(answer))
    })
  }).listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as AddressInfo
  const udp = createSocket('udp4', (question, from) => {
    const answer = respond(question)
    if (answer === undefined) return
    const truncated = Buffer.from(answer.subarray(0, questionEnd(question)))
    if (answer.length > 512) {
      truncated[2]! |= 2
      truncated.fill(0, 6, 12)
    }
    udp.send(answer.length > 512 ? truncated : answer, from.port, from.address)
  })
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  return {
    address: `127.0.0.1:${port}`,
    asked,
    close() {
      tcp.close()
      udp.close()
    },
  }
}
