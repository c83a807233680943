// Watches whether secondaries serve the zones they were notified of, and notifies them again until they do.
import { randomInt } from 'node:crypto'
import type { Logger } from 'pino'
import { listenAddress } from '../../../dns/listen-address.ts'
import { textName } from '../../../dns/packet/wire-names.ts'
import { type Probe, probeSoa } from '../../../dns/soa-probe.ts'
import type { LagReason } from '../../../services/dns/index.ts'
import { isNewer } from './journal.ts'
import { inTurn, type LagStore, type LagSummary } from './lag.ts'

/** A secondary: `address:port`, and the host that its transfers come from. */
type SecondaryHost = { address: string; host: string }

export type Watch = {
  /** A notice has ended. `changed` if it was for a change rather than for the start of this process. */
  noticed(origin: string, secondary: SecondaryHost, notice: { acknowledged: boolean; changed: boolean }): void
  /** The zone was sent to a host at this serial. */
  sent(origin: string, host: string, serial: number): void
  /** The current lags of the platform's secondaries. */
  lags(): LagSummary[]
  close(): void
}

export type WatchOptions = {
  /** The platform's secondaries. */
  secondaries: readonly SecondaryHost[]
  /** Whether a secondary should have the zone. */
  isNotified(origin: string, address: string): boolean
  /** Null for a zone that is gone. */
  serialOf(origin: string): number | null
  /** The catalog: only an acknowledgement shows that a secondary has it. */
  catalog: string
  notify(origin: string, secondary: string): void
  store?: LagStore | undefined
  log: Logger
  probe?(address: string, zone: string): Promise<Probe>
  /** How long after a notice the secondary is queried first, and the range of intervals after that. */
  delaysMs?: { first: number; min: number; max: number }
}

const defaultDelaysMs = { first: 2_000, min: 30_000, max: 60_000 }
const probesAtOnce = 50
const silentErrors = new Set<Probe['error']>(['timeout', 'unreachable', 'refused'])
// A secondary that doesn't have a zone at all may not be meant to. After this many rounds it is notified less often; so is
// a customer's secondary, because customers may name any address.
const frequentRounds = 20
// Thousands of zones may have secondaries that never answer.
const storeAgainMs = 300_000

type Entry = {
  /** The serial that the secondary has to reach, and that of the last notice since. */
  expected: number
  latest: number
  acknowledged: boolean
  changed: boolean
  sinceMs: number
  checks: number
  served: number | null
  reason: LagReason | null
  /** The reason in the store; null if it has none. */
  reported: LagReason | null
  /** The last check in the store, and when it was stored. */
  stored: { result: string; atMs: number } | null
}

type Target = SecondaryHost & {
  /** Whether it is one of the platform's. */
  own: boolean
  entries: Map<string, Entry>
  /** By zone, the serial that was last sent there, until it is served. */
  sent: Map<string, number>
  first: NodeJS.Timeout | undefined
  round: NodeJS.Timeout | undefined
  busy: boolean
}

export function createWatch(options: WatchOptions): Watch {
  const { isNotified, serialOf, catalog, notify, store, log, probe = probeSoa, delaysMs = defaultDelaysMs } = options
  const targets = new Map<string, Target>()
  const targetAt = ({ address, host }: SecondaryHost, own = false): Target => {
    const state = { entries: new Map(), sent: new Map(), first: undefined, round: undefined, busy: false }
    const target = targets.get(address) ?? { address, host, own, ...state }
    targets.set(address, target)
    return target
  }
  for (const one of options.secondaries) targetAt(one, true)
  const write = inTurn(store)
  let closed = false
  let known = store === undefined

  /** Whether it lags long enough to be reported: it was queried twice, or no notice reaches it. */
  const lags = ({ reason, checks, acknowledged }: Entry) => reason !== null && (checks > 1 || !acknowledged)

  function reasonOf(target: Target, origin: string, entry: Entry, { serial, error }: Probe): LagReason {
    if (serial === null && error !== 'not_served') return error
    const sent = target.sent.get(origin)
    if (sent !== undefined && !isNewer(entry.expected, sent)) return 'rejected'
    if (!entry.acknowledged) return 'not_notified'
    return error ?? 'not_transferred'
  }

  async function drop(target: Target, origin: string, entry: Entry): Promise<void> {
    // Before writing to the store, because a notice that ends in the meantime starts a new entry.
    if (target.entries.get(origin) === entry) target.entries.delete(origin)
    target.sent.delete(origin)
    if (!entry.reported) return
    try {
      await write((store) => store.end({ origin, secondary: target.address }))
    } catch (err) {
      const newer = target.entries.get(origin)
      if (newer) newer.reported ??= entry.reported
      else target.entries.set(origin, entry)
      throw err
    }
  }

  async function applyProbe(target: Target, origin: string, entry: Entry, result: Probe): Promise<void> {
    const { address: secondary } = target
    if (result.serial !== null && !isNewer(entry.latest, result.serial)) return drop(target, origin, entry)
    if (result.serial !== null && !isNewer(entry.expected, result.serial)) {
      // It follows, but the zone has changed again in the meantime.
      if (entry.reported) await write((store) => store.end({ origin, secondary }))
      Object.assign(entry, { expected: entry.latest, sinceMs: Date.now(), checks: 0, reason: null, reported: null })
      return
    }
    entry.checks++
    entry.served = result.serial
    entry.reason = reasonOf(target, origin, entry, result)
    notify(origin, secondary)
    // It learns of a new zone from the catalog.
    if (entry.reason === 'not_served') notify(catalog, secondary)
    // At startup nothing has changed, so a secondary that doesn't answer may well have everything.
    const { served, reason, sinceMs } = entry
    if (!lags(entry) || reason === entry.reported || (!entry.changed && served === null)) return
    await write((store) => store.begin({ origin, secondary, served, reason, since: new Date(sinceMs) }))
    entry.reported = reason
  }

  /** Stores the result for the owner of the zone, at a limited rate if nothing changes. */
  async function storeCheck(target: Target, origin: string, entry: Entry, { serial, error }: Probe): Promise<void> {
    const result = `${serial} ${error}`
    const isFresh = entry.stored?.result === result && Date.now() - entry.stored.atMs < storeAgainMs
    // The platform's own secondaries are queried whenever their status is.
    if (target.own || isFresh) return
    await write((store) => store.checked({ origin, secondary: target.address, serial, error }))
    entry.stored = { result, atMs: Date.now() }
  }

  /** Queries a secondary for a zone, or assumes that it is silent; null if there was nothing to query. */
  async function check(target: Target, origin: string, isSilent: boolean): Promise<Probe | null> {
    const entry = target.entries.get(origin)
    if (!entry) return null
    const { address: secondary } = target
    if (!isNotified(origin, secondary)) {
      if (entry.reported) await write((store) => store.forget({ origin, secondary }))
      target.entries.delete(origin)
      return null
    }
    if (serialOf(origin) === null || (origin === catalog && entry.acknowledged)) {
      await drop(target, origin, entry)
      return null
    }
    if (origin === catalog) {
      entry.checks++
      notify(catalog, secondary)
      return null
    }
    const result: Probe = isSilent ? { serial: null, error: 'timeout' } : await probe(secondary, textName(origin))
    if (closed) return result
    await applyProbe(target, origin, entry, result)
    if (!isSilent) await storeCheck(target, origin, entry, result)
    return result
  }

  /** Queries each of the zones. A secondary that never answers isn't queried for thousands of them. */
  async function checkAll(target: Target, origins: string[]): Promise<void> {
    if (target.busy || closed) return
    target.busy = true
    let silent = 0
    let answered = false
    const remaining = origins.values()
    const work = async () => {
      for (const origin of remaining) {
        if (closed) return
        try {
          const result = await check(target, origin, !answered && silent >= probesAtOnce)
          if (result && silentErrors.has(result.error)) silent++
          else if (result) answered = true
        } catch (err) {
          // Retried in the next round.
          log.warn({ err, secondary: target.address, zone: textName(origin) }, 'a lag could not be stored')
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(probesAtOnce, origins.length) }, work))
    target.busy = false
    plan(target, isFirst(target))
  }

  /** Plans the next checks, soon if there is a first one. */
  function plan(target: Target, soon: boolean): void {
    if (target.entries.size === 0 && !target.own) targets.delete(target.address)
    if (closed || target.entries.size === 0) return
    if (soon) target.first ??= setTimeout(checkFirst, delaysMs.first, target)
    target.round ??= setTimeout(checkAgain, randomInt(delaysMs.min, delaysMs.max + 1), target)
  }

  function isFirst({ entries }: Target): boolean {
    for (const { checks } of entries.values()) if (checks === 0) return true
    return false
  }

  function checkFirst(target: Target): void {
    target.first = undefined
    void checkAll(
      target,
      [...target.entries].filter(([, { checks }]) => checks === 0).map(([origin]) => origin),
    )
  }

  function checkAgain(target: Target): void {
    target.round = undefined
    const due = [...target.entries].filter(([, { reason, checks }]) => {
      const isFrequent = (target.own && reason !== 'not_served') || checks < frequentRounds
      return isFrequent || randomInt(frequentRounds) === 0
    })
    void recall().then(() =>
      checkAll(
        target,
        due.map(([origin]) => origin),
      ),
    )
  }

  function entryOf(target: Target, origin: string, serial: number): Entry {
    const entry = target.entries.get(origin) ?? {
      expected: serial,
      latest: serial,
      acknowledged: false,
      changed: false,
      sinceMs: Date.now(),
      checks: 0,
      served: null,
      reason: null,
      reported: null,
      stored: null,
    }
    target.entries.set(origin, entry)
    return entry
  }

  /** Loads the lags of the previous process; if the database is down, in the next round. */
  async function recall(): Promise<void> {
    if (known) return
    try {
      for (const { origin, secondary, reason, since } of await store!.known()) {
        const serial = serialOf(origin)
        if (serial === null) continue
        const target = targetAt({ address: secondary, host: listenAddress(secondary).host })
        Object.assign(entryOf(target, origin, serial), { reported: reason, changed: true, sinceMs: since.getTime() })
        plan(target, true)
      }
      known = true
    } catch (err) {
      log.warn({ err }, 'the lags of secondaries could not be read')
    }
  }

  void recall()
  return {
    noticed(origin, secondary, { acknowledged, changed }) {
      const serial = serialOf(origin)
      if (serial === null || closed) return
      const target = targetAt(secondary)
      const entry = entryOf(target, origin, serial)
      entry.latest = serial
      entry.acknowledged = acknowledged
      entry.changed ||= changed
      plan(target, entry.checks === 0)
    },
    sent(origin, host, serial) {
      for (const target of targets.values()) if (target.host === host) target.sent.set(origin, serial)
    },
    lags() {
      const own = [...targets.values()].filter((target) => target.own)
      return own.map(({ address: secondary, entries }) => {
        const nowMs = Date.now()
        let [zones, oldestMs] = [0, nowMs]
        for (const entry of entries.values()) {
          if (!lags(entry)) continue
          zones++
          oldestMs = Math.min(oldestMs, entry.sinceMs)
        }
        return { secondary, zones, oldestSeconds: (nowMs - oldestMs) / 1000 }
      })
    },
    close() {
      closed = true
      for (const { first, round } of targets.values()) {
        clearTimeout(first)
        clearTimeout(round)
      }
    },
  }
}
