// Messages between the threads of the nameserver.
import type { Counted } from '../../../platform/observe/tallies.ts'
import type { Dnssec } from '../answer/cache.ts'
import type { Below } from '../answer/encode.ts'
import type { RateLimitMemory } from '../answer/rate-limit.ts'
import type { GapTable } from '../zones/gaps.ts'
import type { Stamp } from './generations.ts'

export type WorkerData = {
  /** Sockets belong to the whole process: the main thread opens and closes them, and may send through them. */
  listeners: { socket: number; nsid: string }[]
  cookieSecret: Uint8Array
  /** Null for no rate limit. */
  rateLimit: { perSecond?: number | undefined; slip?: number | undefined; memory: RateLimitMemory } | null
  tallies: SharedArrayBuffer
  generations: SharedArrayBuffer
  /** The memory of the name filter, which only the main thread changes. */
  names: SharedArrayBuffer
  /** How many packets were handed over and not answered yet. */
  outstanding: SharedArrayBuffer
  /** For each listener, 1 once the thread has answered a query there. */
  answering: SharedArrayBuffer
}

/** An answer for a worker's cache. `zone` is the id for which its queries are counted. */
export type SharedAnswer = {
  hash: number
  octets: Uint8Array
  below: Below | null
  rcode: number
  tuple: number
  dnssec: Dnssec
  stamp: Stamp
  zone: string
  /** The number of the `GapTable` that finds an answer for one gap; null for other answers. */
  gaps: number | null
}

/** The chain of a zone, sent before the answers that need it. */
export type ZoneGaps = { zone: string; table: GapTable }

/** Sent to a worker: answers to cache, or a request to report its counts, which it also does periodically. */
export type ToWorker = SharedAnswer[] | ZoneGaps | 'report'

/** Sent by a worker: packed packets, or its counts by zone. */
export type FromWorker = Uint8Array | Counted[]

/** A packet that only the main thread can answer, and its sender as a `sockaddr`. */
export type HandedPacket = { listener: number; sender: Buffer; message: Buffer }

const headOctets = 4
const bufferOctets = 1 << 16

/**
 * Hands packets over in one buffer per turn of the event loop. As objects, they would cost the main thread more than their
 * lookup.
 */
export function createPacker(send: (octets: Uint8Array<ArrayBuffer>) => void): (packet: HandedPacket) => void {
  const buffer = Buffer.allocUnsafeSlow(bufferOctets)
  let used = 0
  const flush = () => {
    if (used > 0) send(new Uint8Array(buffer.subarray(0, used)))
    used = 0
  }
  return ({ listener, sender, message }) => {
    if (used + headOctets + sender.length + message.length > bufferOctets) flush()
    if (used === 0) setImmediate(flush)
    buffer[used] = listener
    buffer[used + 1] = sender.length
    buffer.writeUInt16LE(message.length, used + 2)
    used += headOctets
    used += sender.copy(buffer, used)
    used += message.copy(buffer, used)
  }
}

export function* unpack(octets: Uint8Array): Generator<HandedPacket> {
  const buffer = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
  for (let at = 0; at < buffer.length; ) {
    const senderAt = at + headOctets
    const messageAt = senderAt + buffer[at + 1]!
    const end = messageAt + buffer.readUInt16LE(at + 2)
    yield {
      listener: buffer[at]!,
      sender: buffer.subarray(senderAt, messageAt),
      message: buffer.subarray(messageAt, end),
    }
    at = end
  }
}

/** Sends the items of one turn of the event loop together, because each message has a high fixed cost. */
export function createBatch<T>(send: (items: T[]) => void): (item: T) => void {
  let items: T[] = []
  return (item) => {
    if (items.push(item) > 1) return
    setImmediate(() => {
      const all = items
      items = []
      send(all)
    })
  }
}
