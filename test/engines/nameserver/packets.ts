// DNS questions for tests, made and sent by code that shares nothing with the nameserver's own.
import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { connect } from 'node:net'
import { type Rr, readMessage } from './messages.ts'

export { type Message, type Rr, readMessage } from './messages.ts'

export const types: Record<string, number> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  NAPTR: 35,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  TLSA: 52,
  SVCB: 64,
  HTTPS: 65,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  CAA: 257,
  TYPE65400: 65400,
}

export type QuestionOptions = {
  id?: number
  class?: number
  opcode?: number
  rd?: boolean
  /** Adds an OPT record with this size. */
  edns?: number
  version?: number
  dnssecOk?: boolean
  options?: [code: number, data: Buffer][]
  counts?: [number, number, number, number]
  trailing?: Buffer
}

export function nameOctets(name: string): Buffer {
  const labels = name === '.' || name === '' ? [] : name.split('.')
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    Buffer.from([0]),
  ])
}

export function question(name: string, type: string | number, options: QuestionOptions = {}): Buffer {
  const { id = randomInt(0x10000), class: klass = 1, opcode = 0, rd = false, edns, version = 0 } = options
  const header = Buffer.alloc(12)
  header.writeUInt16BE(id, 0)
  header[2] = (opcode << 3) | (rd ? 1 : 0)
  const counts = options.counts ?? [1, 0, 0, edns === undefined ? 0 : 1]
  for (const [index, count] of counts.entries()) header.writeUInt16BE(count, 4 + index * 2)
  const tail = Buffer.alloc(4)
  tail.writeUInt16BE(typeof type === 'number' ? type : types[type]!, 0)
  tail.writeUInt16BE(klass, 2)
  const parts = [header, nameOctets(name), tail]
  if (edns !== undefined) {
    const data = Buffer.concat(
      (options.options ?? []).flatMap(([code, octets]) => {
        const head = Buffer.alloc(4)
        head.writeUInt16BE(code, 0)
        head.writeUInt16BE(octets.length, 2)
        return [head, octets]
      }),
    )
    const opt = Buffer.alloc(11)
    opt.writeUInt16BE(41, 1)
    opt.writeUInt16BE(edns, 3)
    opt[6] = version
    opt[7] = options.dnssecOk ? 0x80 : 0
    opt.writeUInt16BE(data.length, 9)
    parts.push(opt, data)
  }
  return Buffer.concat([...parts, options.trailing ?? Buffer.alloc(0)])
}

/**
 * A socket that receives from this port alone. The system gives the numbers of closed sockets to new ones, so what servers
 * still answer to other tests on this machine arrives here too.
 */
export function receiveFrom(port: number, receive: (message: Buffer) => void): Socket {
  return createSocket('udp4', (message, from) => from.port === port && receive(message))
}

/** One packet over UDP; null if nothing comes within the time. */
export function sendUdp(port: number, packet: Buffer, waitMs = 20_000): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const socket = receiveFrom(port, (answer) => finish(answer))
    const finish = (answer: Buffer | null) => {
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(() => finish(null), waitMs)
    socket.on('error', reject)
    socket.send(packet, port, '127.0.0.1')
  })
}

export function framed(packet: Buffer): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(packet.length, 0)
  return Buffer.concat([length, packet])
}

/** Octets as they are over one connection; resolves with as many messages as wanted, or fewer if it is closed first. */
export function sendTcp(port: number, octets: Buffer, wanted = 1, waitMs = 20_000): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    const messages: Buffer[] = []
    let held = Buffer.alloc(0)
    const timer = setTimeout(() => socket.destroy(), waitMs)
    socket.on('data', (chunk) => {
      held = Buffer.concat([held, chunk])
      while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        messages.push(held.subarray(2, 2 + held.readUInt16BE(0)))
        held = held.subarray(2 + held.readUInt16BE(0))
      }
      if (messages.length >= wanted) socket.destroy()
    })
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(messages)
    })
    // A server that closes at once resets what is on its way, or what is sent after that.
    const isClosed = ({ code = '' }: NodeJS.ErrnoException) => ['ECONNRESET', 'EPIPE'].includes(code)
    socket.on('error', (error) => isClosed(error) || reject(error))
    socket.write(octets)
  })
}

export async function askUdp(port: number, name: string, type: string | number, options: QuestionOptions = {}) {
  const answer = await sendUdp(port, question(name, type, options))
  if (!answer) throw new Error(`no answer for ${name} ${type}`)
  return readMessage(answer)
}

export async function askTcp(port: number, name: string, type: string | number, options: QuestionOptions = {}) {
  const [answer] = await sendTcp(port, framed(question(name, type, options)))
  if (!answer) throw new Error(`no answer for ${name} ${type}`)
  return readMessage(answer)
}

export function addressesIn(rrs: Rr[]): string[] {
  return rrs.filter(({ type }) => type === 1).map(({ data }) => data.join('.'))
}
