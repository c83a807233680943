// Renews signatures before they expire and removes unused ones, a few at a time, in the background.
import type { Logger } from 'pino'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { textName } from '../../../dns/packet/wire-names.ts'
import type { Database } from '../../../platform/database/database.ts'
import {
  type DueSignature,
  dueSignatures,
  platformIds,
  postponeSignatures,
  settleSignatures,
} from '../../../services/dns/index.ts'
import { nameOf } from '../zones/changed-lines.ts'
import type { OutsideAddresses } from '../zones/lookup.ts'
import { keyOf, linesOf, RecordsByName } from '../zones/zone-records.ts'
import type { ZoneSource, ZoneTable } from '../zones/zone-table.ts'
import { entryOfSet, nameOfEntry, type SignedZone } from './chain.ts'
import { isSigned, setsIn } from './sets.ts'
import { isOld, neededSignatures, type Signer } from './signer.ts'

export type RenewalOptions = {
  db: Database
  table: ZoneTable
  signer: Signer
  outside: OutsideAddresses
  log: Logger
  /** Unix time in seconds. */
  now?: () => number
}

export type Renewal = {
  /** Runs one round now. Returns how many signatures it checked. */
  run(): Promise<number>
  close(): Promise<void>
}

const everyMs = 60_000
// After startup, and while there are more: after a long time without a nameserver, all of them are due.
const soonMs = 1_000
const batchSize = 500
const dayMs = 86_400_000
const retryMs = 3_600_000

/**
 * The names at some entries, as the zone's records write them. Nameservers reread only these names, if they store the zone
 * by name, whichever way the renewing one stores it.
 */
function namesAt({ records }: ZoneSource, zone: SignedZone, entries: Iterable<string>): string[] {
  const named = typeof records === 'string' ? namesByKey(records, zone.origin) : null
  return Array.from(entries, (entry) => {
    const key = nameOfEntry(zone, entry)
    const lines = records instanceof RecordsByName ? records.linesAt(key) : undefined
    const name = named?.get(key) ?? (lines && nameOf(lines))
    if (name !== undefined) return name
    return key === zone.origin ? '@' : textName(`${key.slice(0, -zone.origin.length)}\0`)
  })
}

function namesByKey(records: string, origin: string): Map<string, string> {
  const names = Array.from(linesOf(records), nameOf)
  return new Map(names.map((name) => [keyOf(name, origin), name]))
}

export function startRenewal(options: RenewalOptions): Renewal {
  const { db, table, signer, outside, log, now = () => Math.floor(Date.now() / 1000) } = options
  let running: Promise<number> | null = null

  function sourceOf(due: DueSignature): ZoneSource | undefined {
    if (due.zone !== null) return table.get(due.zone)
    for (const name of table.names()) {
      const source = table.get(name)!
      if (source.id.startsWith(platformIds) && source.signing) return source
    }
    return undefined
  }

  /**
   * Renews signatures of one zone, in the version that is served here; newer ones wait for another round. Returns false if
   * another domain of that name is served, or the zone isn't signed.
   */
  async function settle(source: ZoneSource, due: readonly DueSignature[]): Promise<boolean> {
    const zone = table.zoneOf(source)
    const domainId = due[0]!.domainId
    if (!isSigned(zone) || (domainId ?? source.id) !== source.id) return false
    const entries = new Set(due.map(({ name, type }) => entryOfSet(zone, name, type)))
    const { keys } = zone.signed.signing
    const named = (keyId: string, fingerprint: string) => keyId + fingerprint
    const used = new Map(
      Array.from(neededSignatures(source, keys, setsIn(zone, entries, outside)), (one) => [
        named(one.signer.id, one.fingerprint),
        one,
      ]),
    )
    const isUsed = (one: DueSignature) => used.has(named(one.keyId, one.fingerprint))
    const inUse = due.filter(isUsed)
    // The next version has another SOA, so this one is never signed again.
    const soas = inUse.filter(({ type }) => type === typeNumbers.SOA)
    const others = inUse.filter(({ type }) => type !== typeNumbers.SOA)
    const raise = soas.some(({ octets }) => isOld(octets, now()))
    const needed = others.map((one) => used.get(named(one.keyId, one.fingerprint))!)
    const settlement = {
      domainId,
      zone: source.name,
      serial: source.serial,
      renewed: await signer.signAll(needed),
      unused: due.filter((one) => !isUsed(one)),
      kept: soas,
      keptUntil: new Date(now() * 1000 + dayMs),
      names: namesAt(source, zone, entries),
      raise,
    }
    await settleSignatures(db, settlement)
    return true
  }

  /** Returns false if the zone isn't served here. */
  async function settleSome(due: readonly DueSignature[]): Promise<boolean> {
    const source = sourceOf(due[0]!)
    return source !== undefined && (await settle(source, due))
  }

  async function round(): Promise<number> {
    const due = await dueSignatures(db, new Date(now() * 1000), batchSize)
    for (const some of Map.groupBy(due, ({ keyId }) => keyId).values()) {
      const settled = await settleSome(some).catch((err) => {
        log.warn({ err, zone: some[0]!.zone }, 'signatures of a zone could not be renewed')
        return false
      })
      // Signatures of other zones must not wait for these.
      if (!settled) await postponeSignatures(db, some, new Date(now() * 1000 + retryMs))
    }
    return due.length
  }

  function run(): Promise<number> {
    running ??= round().finally(() => {
      running = null
    })
    return running
  }

  let timer: NodeJS.Timeout
  let closed = false
  function runIn(ms: number): void {
    timer = setTimeout(async () => {
      const count = await run().catch((err) => {
        log.warn({ err }, 'signatures of zones could not be renewed; it is tried again')
        return 0
      })
      if (!closed) runIn(count < batchSize ? everyMs : soonMs)
    }, ms)
    timer.unref()
  }
  runIn(soonMs)
  return {
    run,
    async close() {
      closed = true
      clearTimeout(timer)
      await running?.catch(() => {})
    },
  }
}
