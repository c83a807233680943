// NOTIFY to secondaries (RFC 1996): signed, repeated until acknowledged, one at a time per zone and secondary.
import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Logger } from 'pino'
import { classIn, headerOctets, opcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { createSigner, readTsig, type TsigKey, tsigErrors, verify } from '../../../dns/packet/tsig.ts'
import { textName } from '../../../dns/packet/wire-names.ts'
import { createEncoder } from '../answer/encode.ts'
import type { Rrset } from '../zones/zone.ts'

/** `address` is the host and port as configured. */
export type Secondary = { address: string; host: string; port: number; key: TsigKey }

export type Notifier = {
  notify(origin: string, secondary: Secondary): void
  /** Notices that are queued or not acknowledged yet. */
  readonly open: number
  close(): Promise<void>
}

export type NotifierOptions = {
  /** Null if the zone was removed in the meantime. */
  soaOf(origin: string): Rrset | null
  onEnd(result: 'acknowledged' | 'lost', tries: number, about: { origin: string; secondary: Secondary }): void
  log: Logger
  now: () => number
  retryDelaysMs?: readonly number[]
}

/** How long each try waits for an acknowledgement; the last try waits as long as the first. */
export const retryDelaysMs = [1_000, 3_000, 10_000, 30_000] as const
// Changes of one zone within this time are one notice, so that a secondary transfers them together.
const spacingMs = 100
// Per secondary, so that an unreachable one doesn't delay the others.
const maxInFlight = 200
const maxId = 0x10000

const encoder = createEncoder()

type Notice = {
  origin: string
  target: Target
  tries: number
  id: number
  packet: Buffer
  mac: Buffer
  acknowledged: boolean
  /** Whether the zone has changed again since the notice was sent. */
  changedAgain: boolean
  /** Whether `spacingMs` has passed: only then may the notice be sent again or dropped. */
  spaced: boolean
  timer: NodeJS.Timeout | undefined
}

type Target = Secondary & { active: Map<string, Notice>; waiting: Set<string> }

function unsignedNotice(origin: string, soa: Rrset, id: number): Buffer {
  const question = Buffer.concat([Buffer.from(origin, 'latin1'), Buffer.from([0, typeNumbers.SOA, 0, classIn])])
  const { octets, start, end } = encoder.encode(
    question,
    origin,
    {
      rcode: 0,
      authoritative: true,
      answer: [{ owner: origin, set: soa }],
      authority: [],
      additional: [],
      cacheable: false,
      wildcard: false,
      general: false,
      proofs: null,
      awaits: null,
    },
    1232,
  )
  const packet = Buffer.from(octets.subarray(start, end))
  packet.writeUInt16BE(id, 0)
  packet[2] = packet[2]! | (opcodes.NOTIFY << 3)
  return packet
}

export function createNotifier(options: NotifierOptions): Notifier {
  const { soaOf, onEnd, log, now } = options
  const delays = options.retryDelaysMs ?? retryDelaysMs
  /** Secondaries with open notices, by address and key. */
  const targets = new Map<string, Target>()
  const byId = new Map<number, Notice>()
  const sockets = new Map<string, Socket>()
  let closed = false
  let warnedMs = 0

  const idOf = ({ host, port, key }: Secondary) => `${host} ${port} ${key.name}`

  function targetOf(secondary: Secondary): Target {
    const { address, host, port, key } = secondary
    const target = targets.get(idOf(secondary)) ?? { address, host, port, key, active: new Map(), waiting: new Set() }
    targets.set(idOf(secondary), target)
    return target
  }

  function socketFor(host: string): Socket {
    const type = isIPv6(host) ? 'udp6' : 'udp4'
    const known = sockets.get(type)
    if (known) return known
    const socket = createSocket(type, receive)
    socket.on('error', (err) => log.debug({ err }, 'a NOTIFY could not be sent'))
    sockets.set(type, socket)
    return socket
  }

  /** The sender's address doesn't matter, because only the secondary can sign the response to this notice. */
  function receive(message: Buffer): void {
    if (message.length < headerOctets || (message[2]! & 0xf8) !== (0x80 | (opcodes.NOTIFY << 3))) return
    const notice = byId.get(message.readUInt16BE(0))
    const tsig = readTsig(message)
    if (!notice || !tsig || tsig === 'malformed') return
    const { key } = notice.target
    if (verify(message, tsig, { key, nowSeconds: now(), prior: notice.mac }) !== tsigErrors.NONE) return
    // A refusal also counts as an acknowledgement: a secondary fetches an unknown zone when the catalog lists it.
    notice.acknowledged = true
    if (notice.spaced) end(notice, 'acknowledged')
  }

  function freshId(): number {
    for (;;) {
      const id = randomInt(maxId)
      if (!byId.has(id)) return id
    }
  }

  function prepare(notice: Notice): boolean {
    const soa = soaOf(notice.origin)
    if (!soa) return false
    byId.delete(notice.id)
    notice.id = freshId()
    byId.set(notice.id, notice)
    notice.packet = createSigner(notice.target.key, null, now)(unsignedNotice(notice.origin, soa, notice.id))
    const tsig = readTsig(notice.packet)
    if (tsig && tsig !== 'malformed') notice.mac = tsig.mac
    notice.tries = 0
    notice.changedAgain = false
    notice.acknowledged = false
    return true
  }

  function send(notice: Notice): void {
    const { host, port } = notice.target
    const delayMs = delays[notice.tries] ?? delays[0]!
    notice.tries++
    notice.spaced = false
    socketFor(host).send(notice.packet, port, host, (err) => {
      if (err) log.debug({ err, secondary: host }, 'a NOTIFY could not be sent')
    })
    notice.timer = setTimeout(spaced, Math.min(spacingMs, delayMs), notice, delayMs)
  }

  function spaced(notice: Notice, delayMs: number): void {
    notice.spaced = true
    if (notice.changedAgain) renew(notice)
    else if (notice.acknowledged) end(notice, 'acknowledged')
    else notice.timer = setTimeout(overdue, delayMs - Math.min(spacingMs, delayMs), notice)
  }

  function overdue(notice: Notice): void {
    if (notice.tries <= delays.length) send(notice)
    else end(notice, 'lost')
  }

  function renew(notice: Notice): void {
    clearTimeout(notice.timer)
    if (prepare(notice)) send(notice)
    else end(notice, null)
  }

  function end(notice: Notice, result: 'acknowledged' | 'lost' | null): void {
    const { target, origin, tries } = notice
    clearTimeout(notice.timer)
    byId.delete(notice.id)
    target.active.delete(origin)
    if (result) onEnd(result, tries, { origin, secondary: target })
    if (result === 'lost' && Date.now() - warnedMs > 60_000) {
      warnedMs = Date.now()
      log.warn({ secondary: target.address, zone: textName(origin) }, 'a secondary ignores NOTIFY')
    }
    next(target)
    if (target.active.size + target.waiting.size === 0) targets.delete(idOf(target))
  }

  function next(target: Target): void {
    for (const origin of target.waiting) {
      if (closed || target.active.size >= maxInFlight) return
      target.waiting.delete(origin)
      const notice: Notice = {
        origin,
        target,
        tries: 0,
        id: -1,
        packet: Buffer.alloc(0),
        mac: Buffer.alloc(0),
        acknowledged: false,
        changedAgain: false,
        spaced: false,
        timer: undefined,
      }
      if (!prepare(notice)) continue
      target.active.set(origin, notice)
      send(notice)
    }
  }

  return {
    get open() {
      let sum = 0
      for (const { active, waiting } of targets.values()) sum += active.size + waiting.size
      return sum
    },
    notify(origin, secondary) {
      if (closed) return
      const target = targetOf(secondary)
      const notice = target.active.get(origin)
      if (!notice) {
        target.waiting.add(origin)
        next(target)
      } else if (notice.spaced) renew(notice)
      else notice.changedAgain = true
    },
    async close() {
      closed = true
      for (const { active, waiting } of targets.values()) {
        for (const { timer } of active.values()) clearTimeout(timer)
        active.clear()
        waiting.clear()
      }
      byId.clear()
      for (const socket of sockets.values()) await new Promise<void>((resolve) => socket.close(() => resolve()))
    },
  }
}
