// UDP in batches, with Linux system calls that Node doesn't offer: one call receives or sends dozens of packets.
import { isIPv6 } from 'node:net'
import { getSystemErrorName } from 'node:util'
import { ipv4Octets, ipv4Text, ipv6Octets, ipv6Text } from '../../../dns/addresses.ts'
import type { ListenAddress } from '../../../dns/listen-address.ts'
import { type Koffi, loadKoffi } from '../../../platform/koffi.ts'
import type { Peer } from '../answer/without-zones.ts'

/** Returns the answer to a packet, if any. Both arguments are only valid until it returns. */
export type Answer = (message: Buffer, sender: Buffer) => Buffer | null

export type PacketSockets = {
  /** Several sockets may have one address; the system distributes packets among them by sender. */
  open(address: ListenAddress): number
  close(socket: number): void
  /** Sends to a sender passed to `Answer`. If the system's buffer is full, the answer is lost. */
  send(socket: number, sender: Uint8Array, answer: Buffer): void
  /** Returns when there is something to read, or after the timeout. */
  waiter(sockets: readonly number[]): (timeoutMs: number) => void
  /** Answers at most one batch of packets; true if there may be more. `onOversized` is called for packets that are too long. */
  reader(socket: number, answer: Answer, onOversized: () => void): () => boolean
}

const batch = 64
// No question is longer, nor any answer over UDP.
const packetOctets = 4096
const bufferOctets = 4 << 20

// Struct layouts and constants of Linux on 64-bit little-endian processors.
const headerOctets = 64
const flagsAt = 48
const lengthAt = 56
const vectorOctets = 16
const senderOctets = 28
const [afInet, afInet6, datagram, closeOnExec] = [2, 10, 2, 0o2000000]
const [levelSocket, reusePort, sendBuffer, receiveBuffer, levelIpv6, ipv6Only] = [1, 15, 7, 8, 41, 26]
const [dontWait, truncated, pollIn, tryAgain] = [0x40, 0x20, 1, 11]

function senderOf({ host, port }: ListenAddress): Buffer {
  const ipv6 = isIPv6(host)
  const octets = ipv6 ? ipv6Octets(host) : ipv4Octets(host)
  if (!octets) throw new Error(`${host} is not an address`)
  const name = Buffer.alloc(ipv6 ? senderOctets : 16)
  name.writeUInt16LE(ipv6 ? afInet6 : afInet, 0)
  name.writeUInt16BE(port, 2)
  octets.copy(name, ipv6 ? 8 : 4)
  return name
}

// Most packets come from a few resolvers, and formatting an address takes as long as a cache lookup.
const knownAddresses = new Map<number, string>()
const maxKnown = 1_000

function ipv4Of(sender: Buffer): string {
  const key = sender.readUInt32LE(4)
  let address = knownAddresses.get(key)
  if (address === undefined) {
    if (knownAddresses.size === maxKnown) knownAddresses.clear()
    address = ipv4Text(sender.subarray(4, 8))
    knownAddresses.set(key, address)
  }
  return address
}

export function peerOf(sender: Buffer): Peer {
  const ipv4 = sender.readUInt16LE(0) === afInet
  return { address: ipv4 ? ipv4Of(sender) : ipv6Text(sender.subarray(8, 24)), port: sender.readUInt16BE(2) }
}

/** Memory for a batch: each packet has a header that points to a sender and to a vector, which points to the octets. */
function createBatchMemory(koffi: Koffi) {
  const vectorsAt = batch * headerOctets
  const sendersAt = vectorsAt + batch * vectorOctets
  const bodiesAt = sendersAt + batch * 32
  // Not from Node's buffer pool, because its address must not change.
  const memory = Buffer.from(new ArrayBuffer(bodiesAt + batch * packetOctets))
  const words = new Uint32Array(memory.buffer)
  const start = koffi.address(memory)
  for (let index = 0; index < batch; index++) {
    const header = index * headerOctets
    const vector = vectorsAt + index * vectorOctets
    memory.writeBigUInt64LE(start + BigInt(sendersAt + index * 32), header)
    memory.writeBigUInt64LE(start + BigInt(vector), header + 16)
    memory.writeBigUInt64LE(1n, header + 24)
    memory.writeBigUInt64LE(start + BigInt(bodiesAt + index * packetOctets), vector)
  }
  return {
    memory,
    sender: (index: number) => sendersAt + index * 32,
    body: (index: number) => bodiesAt + index * packetOctets,
    /** Offsets of 32-bit fields: sender length, flags, received length, and buffer length. */
    senderSize: (index: number) => (index * headerOctets + 8) >> 2,
    flags: (index: number) => (index * headerOctets + flagsAt) >> 2,
    received: (index: number) => (index * headerOctets + lengthAt) >> 2,
    size: (index: number) => (vectorsAt + index * vectorOctets + 8) >> 2,
    words,
  }
}

function createSockets(koffi: Koffi): PacketSockets {
  const libc = koffi.load(null)
  const socket = libc.func('int socket(int, int, int)')
  const setsockopt = libc.func('int setsockopt(int, int, int, void *, int)')
  const bind = libc.func('int bind(int, void *, int)')
  const close = libc.func('int close(int)')
  const sendto = libc.func('long sendto(int, void *, size_t, int, void *, int)')
  const poll = libc.func('int poll(void *, unsigned long, int)')
  const recvmmsg = libc.func('int recvmmsg(int, void *, unsigned int, int, void *)')
  const sendmmsg = libc.func('int sendmmsg(int, void *, unsigned int, int)')

  /** Throws the error that Node would throw. */
  function checked(result: number, syscall: string, { host, port }: ListenAddress): number {
    if (result >= 0) return result
    const code = getSystemErrorName(-koffi.errno())
    throw Object.assign(new Error(`${syscall} ${code} ${host}:${port}`), { code, syscall, address: host, port })
  }

  function sendAll(number: number, memory: Buffer, count: number): void {
    for (let at = 0; at < count; ) {
      const sent = sendmmsg(number, at === 0 ? memory : memory.subarray(at * headerOctets), count - at, dontWait)
      if (sent < 0 && koffi.errno() === tryAgain) return
      // Skips an answer that can't be sent.
      at += Math.max(1, sent)
    }
  }

  return {
    open(address) {
      const name = senderOf(address)
      const ipv6 = isIPv6(address.host)
      const number = checked(socket(ipv6 ? afInet6 : afInet, datagram | closeOnExec, 0), 'socket', address)
      const set = (level: number, option: number, value: number) =>
        setsockopt(number, level, option, Buffer.from(Int32Array.of(value).buffer), 4)
      try {
        checked(set(levelSocket, reusePort, 1), 'setsockopt', address)
        // Otherwise [::] would take the port of 0.0.0.0 as well.
        if (ipv6) checked(set(levelIpv6, ipv6Only, 1), 'setsockopt', address)
        for (const option of [sendBuffer, receiveBuffer]) set(levelSocket, option, bufferOctets)
        checked(bind(number, name, name.length), 'bind', address)
      } catch (error) {
        close(number)
        throw error
      }
      return number
    },
    close: (number) => void close(number),
    send: (number, sender, answer) => void sendto(number, answer, answer.length, dontWait, sender, sender.length),
    waiter(numbers) {
      const descriptors = Buffer.from(new ArrayBuffer(numbers.length * 8))
      for (const [index, number] of numbers.entries()) {
        descriptors.writeInt32LE(number, index * 8)
        descriptors.writeInt16LE(pollIn, index * 8 + 4)
      }
      return (timeoutMs) => void poll(descriptors, numbers.length, timeoutMs)
    },
    reader(number, answer, onOversized) {
      const [from, to] = [createBatchMemory(koffi), createBatchMemory(koffi)]
      // All senders of a socket have the same length, so the views are created once.
      const senders: Buffer[] = []
      const senderAt = (index: number) => {
        const size = from.words[from.senderSize(index)]!
        let sender = senders[index]
        if (sender?.length !== size) {
          sender = from.memory.subarray(from.sender(index), from.sender(index) + size)
          senders[index] = sender
        }
        return sender
      }
      const widest = (index: number) => {
        from.words[from.senderSize(index)] = senderOctets
        from.words[from.size(index)] = packetOctets
      }
      for (let index = 0; index < batch; index++) widest(index)
      return () => {
        const count = recvmmsg(number, from.memory, batch, dontWait, null)
        let answers = 0
        for (let index = 0; index < count; index++) {
          const octets = from.words[from.received(index)]!
          const sender = senderAt(index)
          widest(index)
          if ((from.words[from.flags(index)]! & truncated) !== 0) {
            onOversized()
            continue
          }
          const message = from.memory.subarray(from.body(index), from.body(index) + octets)
          const made = answer(message, sender)
          if (!made || made.length > packetOctets) continue
          made.copy(to.memory, to.body(answers))
          sender.copy(to.memory, to.sender(answers))
          to.words[to.senderSize(answers)] = sender.length
          to.words[to.size(answers)] = made.length
          answers++
        }
        sendAll(number, to.memory, answers)
        return count === batch
      }
    },
  }
}

/** Null if unsupported: another system or processor, or no koffi. */
export async function loadPacketSockets(): Promise<PacketSockets | null> {
  const koffi = await loadKoffi()
  return koffi && createSockets(koffi)
}
