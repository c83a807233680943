// Transfers over a table of zones that was filled by hand: no database, no sockets, any time of day.
import { pino } from 'pino'
import { classIn } from '../../../../src/dns/packet/numbers.ts'
import { decodeQuery, emptyQuery } from '../../../../src/dns/packet/query.ts'
import { createSigner, type TsigKey } from '../../../../src/dns/packet/tsig.ts'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import type { Snapshot } from '../../../../src/engines/nameserver/load/snapshot.ts'
import {
  createTransfers,
  type RunningTransfers,
  type TransfersOptions,
} from '../../../../src/engines/nameserver/transfer/transfers.ts'
import type { OutsideAddresses } from '../../../../src/engines/nameserver/zones/lookup.ts'
import { type ZoneRow, ZoneTable } from '../../../../src/engines/nameserver/zones/zone-table.ts'

export const key = { name: 'transfer.berth.test', secret: Buffer.alloc(32, 'berth') }
export const startSeconds = 1_794_713_718
export const silent = pino({ level: 'silent' })

export const nowhere: OutsideAddresses = { edge: () => null }

export function question(name: string, type: number, opcode = 0): Buffer {
  const header = Buffer.from([0x12, 0x34, opcode << 3, 0, 0, 1, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([
    header,
    Buffer.from(wireName(name), 'latin1'),
    Buffer.from([type >> 8, type & 0xff, 0, classIn]),
  ])
}

/** What runs later does so when time passes, which it does by `pass` alone. */
export function startClock() {
  let nowMs = 0
  let pending: { run(): void; atMs: number }[] = []
  return {
    later: (run: () => void, ms: number) => void pending.push({ run, atMs: nowMs + ms }),
    async pass(ms: number) {
      nowMs += ms
      const due = pending.filter(({ atMs }) => atMs <= nowMs)
      pending = pending.filter(({ atMs }) => atMs > nowMs)
      for (const { run } of due) run()
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

export type Offline = {
  transfers: RunningTransfers
  table: ZoneTable
  clock: { seconds: number }
  /** Puts zones in, or changes them, as the database would; a name without a row is gone. */
  put(names: string[], rows: ZoneRow[]): void
  /** All the answers to one message. `onAnswer` is called with each, and may end the connection; `left`: the client leaves. */
  ask(
    message: Buffer,
    tcp?: boolean,
    onAnswer?: (closing: AbortController) => void,
    left?: AbortSignal,
  ): Promise<Buffer[]>
  /** By the platform's key, or another one. */
  signed(message: Buffer, by?: TsigKey): Buffer
}

export const row = (name: string, serial: number, records: string[] = [], id = `dom_${name}`): ZoneRow => ({
  name,
  id,
  serial,
  verified: true,
  refused: false,
  accountId: 'acc_1',
  records: records.join('\n'),
})

export function startOffline(secondaries: string[] = [], more: Pick<TransfersOptions, 'keys' | 'later'> = {}): Offline {
  const constants = {
    nameservers: ['ns1.berth.test', 'ns2.berth.test'],
    soa: (zone: string) => ({
      mname: 'ns1.berth.test',
      rname: `hostmaster.${zone}`,
      refresh: 3600,
      retry: 600,
      expire: 604_800,
      minimum: 60,
      ttl: 3600,
    }),
    generated: () => [],
  }
  const listeners = new Set<(names: readonly string[]) => void>()
  const moveListeners = new Set<() => void>()
  const table = new ZoneTable(constants, () => {
    for (const listener of moveListeners) listener()
  })
  const snapshot: Snapshot = {
    table,
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    onMoved(listener) {
      moveListeners.add(listener)
      return () => void moveListeners.delete(listener)
    },
    ageSeconds: () => 0,
    renewSignatures: async () => 0,
    close: async () => {},
  }
  const clock = { seconds: startSeconds }
  const now = () => clock.seconds
  const transfers = createTransfers({ snapshot, outside: nowhere, key, secondaries, log: silent, now, ...more })
  return {
    transfers,
    table,
    clock,
    put(names, rows) {
      const changed = table.apply(names, rows)
      for (const listener of listeners) listener(changed)
    },
    async ask(message, tcp = true, onAnswer = () => {}, left) {
      const query = emptyQuery()
      const answers: Buffer[] = []
      if (!decodeQuery(message, query) || query.rcode === 1) return answers
      const peer = { address: '127.0.0.1', port: 5353 }
      const closing = new AbortController()
      const { signal } = closing
      const leaving = AbortSignal.any([signal, ...(left ? [left] : [])])
      const send = async (answer: Buffer) => {
        answers.push(answer)
        onAnswer(closing)
      }
      await transfers.handle({
        message,
        query,
        peer,
        tcp,
        signal,
        leaving,
        send,
        refuse: send,
        answer: async () => null,
      })
      return answers
    },
    signed: (message, by = key) => createSigner(by, null, now)(message),
  }
}
