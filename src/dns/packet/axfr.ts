// Fetches a whole zone from a nameserver (AXFR, RFC 5936), with limits on octets, records and time.
import { randomInt } from 'node:crypto'
import { connect } from 'node:net'
import type { Server } from './exchange.ts'
import { encodeQuestion, flagsOf, frame, hasQuestion, rcodeOf, unframe } from './message.ts'
import { flags, headerOctets, rcodes, typeNumbers } from './numbers.ts'
import { type DecodedRecord, readRecords } from './records.ts'
import { signRequest, type TsigKey } from './tsig.ts'
import { skipName } from './wire-names.ts'

export type AxfrOptions = {
  timeoutMs: number
  maxOctets: number
  maxRecords: number
  signal?: AbortSignal
  /** Signs the request; the answer must be signed with the same key. */
  key?: TsigKey | null
}

/** Why a transfer failed. */
export type TransferFailure = 'refused' | 'unreachable' | 'timeout' | 'malformed' | 'too_large' | 'badly_signed'

/** The records of one message; null if the server refuses. Throws a RangeError if the message is malformed. */
function readMessage(packet: Buffer, id: number): DecodedRecord[] | null {
  if (packet.length < headerOctets || packet.readUInt16BE(0) !== id) throw new RangeError('not an answer')
  if ((flagsOf(packet) & (flags.response | flags.opcode)) !== flags.response) throw new RangeError('not an answer')
  if (rcodeOf(packet) !== rcodes.NOERROR) return null
  let at = headerOctets
  // The question may be omitted, but must not be there twice.
  if (hasQuestion(packet)) at = skipName(packet, at) + 4
  if (at < headerOctets || packet.readUInt16BE(4) > 1) throw new RangeError('not an answer')
  return readRecords(packet, at, packet.readUInt16BE(6)).records
}

/** Returns all records, starting with the SOA, which isn't repeated at the end. Never rejects because of the server. */
export function fetchZone(
  server: Server,
  zone: string,
  options: AxfrOptions,
): Promise<DecodedRecord[] | TransferFailure> {
  const { timeoutMs, maxOctets, maxRecords, signal, key = null } = options
  const id = randomInt(0x10000)
  const question = encodeQuestion(zone, { id, type: typeNumbers.AXFR, recursive: false })
  if (!question) return Promise.resolve('malformed')
  const { query, verifier } = signRequest(question, key)
  return new Promise((resolve) => {
    const records: DecodedRecord[] = []
    let received: Buffer = Buffer.alloc(0)
    let octets = 0
    const socket = connect(server.port, server.host)
    const finish = (result: DecodedRecord[] | TransferFailure) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.removeAllListeners()
      // Without a listener, a late connection error would end the process.
      socket.on('error', () => {})
      socket.destroy()
      resolve(result)
    }
    const abort = () => finish('timeout')
    const timer = setTimeout(finish, timeoutMs, 'timeout')
    signal?.addEventListener('abort', abort)

    const isSoa = ({ name, type }: DecodedRecord) => type === typeNumbers.SOA && name === zone
    /** Returns whether this was the last message. */
    function take(packet: Buffer): boolean {
      // An error may be unsigned. Then it fails too.
      if (verifier && !verifier.verify(packet)) {
        finish(rcodeOf(packet) === rcodes.NOERROR ? 'badly_signed' : 'refused')
        return true
      }
      const found = readMessage(packet, id)
      if (!found) {
        finish('refused')
        return true
      }
      for (const record of found) {
        if (records.length === 0 && !isSoa(record)) throw new RangeError('no zone')
        if (records.length > 0 && isSoa(record)) {
          finish(verifier?.done() === false ? 'badly_signed' : records)
          return true
        }
        if (records.push(record) > maxRecords) {
          finish('too_large')
          return true
        }
      }
      if (records.length === 0) finish('refused')
      return records.length === 0
    }

    socket.on('error', () => finish('unreachable'))
    socket.on('end', () => finish(records.length === 0 ? 'refused' : 'malformed'))
    socket.on('data', (chunk) => {
      octets += chunk.length
      if (octets > maxOctets) return finish('too_large')
      received = Buffer.concat([received, chunk])
      try {
        for (let packet = unframe(received); packet; packet = unframe(received)) {
          if (take(packet)) return
          received = received.subarray(2 + packet.length)
        }
      } catch {
        finish('malformed')
      }
    })
    if (signal?.aborted) abort()
    else socket.write(frame(query))
  })
}
