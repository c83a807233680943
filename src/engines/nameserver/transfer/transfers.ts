// Outgoing zone transfers: answers signed requests, notifies secondaries, and lists all zones in a catalog.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { classIn, opcodes, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { nameInQuery } from '../../../dns/packet/query.ts'
import { readTsig, type Signer, type TsigKey } from '../../../dns/packet/tsig.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import { createEncoder, finishAnswer } from '../answer/encode.ts'
import type { ZoneKey, ZoneKeys } from '../answer/keys.ts'
import { encodeSome, knownSerial, optionsOf, refusal, udpLimit } from '../answer/messages.ts'
import { authenticate } from '../answer/signed.ts'
import type { TransferRequest, Transfers } from '../answer/transfers.ts'
import type { Snapshot } from '../load/snapshot.ts'
import type { OutsideAddresses } from '../zones/lookup.ts'
import type { Rrset } from '../zones/zone.ts'
import type { ZoneSource } from '../zones/zone-table.ts'
import { createAllowance } from './allowance.ts'
import { createCatalog } from './catalog.ts'
import { createImages, type ImageOf } from './images.ts'
import { createJournal, type Difference, isNewer, type Step } from './journal.ts'
import type { LagStore } from './lag.ts'
import { createTransferMetrics } from './metrics.ts'
import { soaOf, stepBetween, zoneRecords } from './records.ts'
import { type CustomerSecondary, createSecondaries, type SecondariesOptions } from './secondaries.ts'
import { followZones, type ZoneChange } from './served-zones.ts'
import { createShares, type Delay, delay } from './shares.ts'
import { changesOf, differencesOf, soaIn, type Version, wholeOf } from './versions.ts'

export type TransfersOptions = {
  snapshot: Snapshot
  /** Addresses from outside the zones: ALIAS records are transferred as addresses. */
  outside: OutsideAddresses
  /** The key of the platform's own secondaries, which get every zone; null if there are none. */
  key: TsigKey | null
  /** The keys of zones, with which their owners' secondaries get one zone each. */
  keys?: Pick<ZoneKeys, 'find' | 'transfersOf'> | null
  /** `address:port` */
  secondaries: readonly string[]
  log: Logger
  registry?: Registry
  /** Unix time in seconds. */
  now?: () => number
  /** Called when the key of a zone was used, at most once a minute. */
  onKeyUsed?(id: string): void
  /** Where lags of secondaries are recorded. */
  lags?: LagStore | undefined
  /** Runs something after this many milliseconds; for tests. */
  later?: Delay
  /** How secondaries are watched; for tests. */
  watching?: Pick<SecondariesOptions, 'delaysMs' | 'retryDelaysMs'>
}

export type RunningTransfers = Transfers & { close(): Promise<void> }

/** The platform's key, or that of a zone. */
type RequestKey = TsigKey & Partial<Pick<ZoneKey, 'id' | 'accountId' | 'purpose' | 'domainId'>>

/** Who sent a request, signed with a known key. */
type Requester = { key: RequestKey; sign: Signer }

/** An upper bound: the size of a signature is only known after signing, and a signed answer must be sent. */
const signatureOctets = (key: TsigKey) => key.name.length + 80

const refusalMs = 1_000
// No more can fit into a message, because each has at least 12 octets.
const maxSetsOverUdp = Math.floor(1232 / 12)
const recordCount = (differences: readonly Difference[]) =>
  differences.reduce((sum, { removed, added }) => sum + removed.length + added.length + 2, 2)

export function createTransfers(options: TransfersOptions): RunningTransfers {
  const { snapshot, outside, key, keys, log, now = () => Math.floor(Date.now() / 1000), later = delay } = options
  const { table } = snapshot
  const encoder = createEncoder()
  const metrics = createTransferMetrics(() => secondaries.lags(), options.registry)
  const journal = createJournal()
  const images = createImages()
  const shares = createShares(later)
  const isAllowed = createAllowance(now, options.onKeyUsed)
  const served = followZones(snapshot, onZones)
  // Only the platform's own secondaries get the catalog.
  const catalog = createCatalog(key ? served.zones : new Map(), onCatalog, now)
  const secondaries = createSecondaries({
    key,
    secondaries: options.secondaries,
    customersOf: (origin) => customersOf(served.zones.get(origin)),
    catalog: catalog.origin,
    soaOf: currentSoa,
    serialOf: (origin) => (origin === catalog.origin ? catalog.serial : (served.zones.get(origin)?.serial ?? null)),
    onEnd: metrics.notified,
    store: options.lags,
    ...options.watching,
    log,
    now,
  })

  /** Secondaries that the owner of a zone has named, with their keys. */
  function customersOf(source: ZoneSource | undefined): CustomerSecondary[] {
    const own = source ? (keys?.transfersOf(source.id) ?? []) : []
    return own.flatMap((key) => key.notify.map((address) => ({ address, key })))
  }

  const isTransferred = ({ id }: ZoneSource) => key !== null || (keys?.transfersOf(id).length ?? 0) > 0

  function currentSoa(origin: string): Rrset | null {
    if (origin === catalog.origin) return catalog.soa()
    const source = served.zones.get(origin)
    return source ? soaOf(table, source) : null
  }

  function onZones(changes: ZoneChange[]): void {
    for (const { origin, before, after } of changes) {
      const same = before !== null && after?.id === before.id
      if (!same && key) catalog.touch(origin)
      if (same && before.serial === after.serial) continue
      const grown = same && isNewer(after.serial, before.serial)
      const step = grown && isTransferred(after) ? stepBetween(table, before, after, outside) : null
      if (step) journal.add(origin, step)
      else journal.drop(origin)
      if (after) secondaries.notify(origin, 'changed')
      else secondaries.forget(origin)
    }
  }

  function onCatalog(step: Step): void {
    journal.add(catalog.origin, step)
    secondaries.notify(catalog.origin, 'changed')
  }

  function versionOf(origin: string): Version | null {
    if (origin === catalog.origin) {
      const { serial } = catalog
      return { origin, serial, soa: catalog.soa(), of: `catalog ${serial}`, records: catalog.records }
    }
    const source = served.zones.get(origin)
    if (!source) return null
    const records = () => zoneRecords(table.zoneOf(source), outside)
    return { origin, serial: source.serial, soa: soaOf(table, source), of: source, records }
  }

  /** Null if the changes since that serial are unknown. */
  function stepsSince({ origin, serial }: Version, from: number | null): readonly Step[] | null {
    const steps = from === null ? null : journal.since(origin, from)
    return steps?.at(-1)?.to === serial ? steps : null
  }

  /** Returns whether everything was sent; a closed connection ends it. */
  async function sendAll({ message, query, send, signal }: TransferRequest, sign: Signer, image: ImageOf) {
    let first = true
    for await (const { template, records } of images.read(image, signal)) {
      await send(sign(finishAnswer(template, message, query, first ? optionsOf(query) : null)))
      metrics.sent(records)
      first = false
    }
    return !signal?.aborted
  }

  /** The SOA alone means that nothing changed, or over UDP that the answer doesn't fit. */
  async function sendSoa(request: TransferRequest, requester: Requester, version: Version): Promise<void> {
    const { template } = encodeSome(encoder, version.origin, [soaIn(version)])
    const { message, query } = request
    await sendSigned(request, requester, finishAnswer(template, message, query, optionsOf(query)))
  }

  async function sendSigned({ message, query, tcp, send }: TransferRequest, { key, sign }: Requester, answer: Buffer) {
    const fits = tcp || answer.length + signatureOctets(key) <= udpLimit(query)
    await send(sign(fits ? answer : refusal(message, query, rcodes.NOERROR, true)))
  }

  async function transferOverUdp(request: TransferRequest, requester: Requester, version: Version, from: number) {
    const { message, query } = request
    const steps = stepsSince(version, from)
    const differences = steps && (await differencesOf(steps))
    const isShort = differences !== null && recordCount(differences) <= maxSetsOverUdp
    const sets = isShort ? [...changesOf(version, differences)] : []
    const { template, sets: encoded } = encodeSome(encoder, version.origin, sets)
    const answer = finishAnswer(template, message, query, optionsOf(query))
    const fits = isShort && encoded === sets.length && answer.length + signatureOctets(requester.key) <= udpLimit(query)
    metrics.answered(fits ? 'ixfr' : 'current')
    if (!fits) return sendSoa(request, requester, version)
    metrics.sent(sets.length)
    return sendSigned(request, requester, answer)
  }

  async function transfer(request: TransferRequest, requester: Requester, origin: string): Promise<void> {
    const { message, query, tcp, signal } = request
    const { key, sign } = requester
    const version = versionFor(origin, key)
    if (!version) return refuse(request, sign, rcodes.NOTAUTH)
    const ixfr = query.type === typeNumbers.IXFR
    const from = ixfr ? knownSerial(message, query) : null
    if (ixfr && from === null) return refuse(request, sign, rcodes.FORMERR)
    if (!ixfr && !tcp) return refuse(request, sign, rcodes.REFUSED)
    if (from !== null && !isNewer(version.serial, from)) {
      metrics.answered('current')
      return sendSoa(request, requester, version)
    }
    if (!tcp) return transferOverUdp(request, requester, version, from!)
    if (signal?.aborted) return
    // A client that leaves before its transfer starts costs nothing, and must not count as one that aborts transfers.
    const leave = await shares.enter(key, request.leaving)
    if (!leave) return refuseLate(request, sign)
    try {
      await transferNow(request, requester, origin, from)
    } finally {
      leave(signal?.aborted ? 'aborted' : 'complete')
    }
  }

  /** Refuses after a delay, because a client that retries at once would keep the others waiting. */
  async function refuseLate(request: TransferRequest, sign: Signer): Promise<void> {
    if (request.signal?.aborted) return
    await new Promise<void>((resolve) => later(resolve, refusalMs))
    if (!request.signal?.aborted) await refuse(request, sign, rcodes.REFUSED)
  }

  /** Checks again, because the zone or the key may have been deleted while the request waited. */
  async function transferNow(request: TransferRequest, { key, sign }: Requester, origin: string, from: number | null) {
    const version = findKey(wireName(key.name))?.id === key.id ? versionFor(origin, key) : null
    if (!version) return refuse(request, sign, rcodes.NOTAUTH)
    const steps = stepsSince(version, from)
    if (!isAllowed(key, steps === null)) return refuseLate(request, sign)
    const differences = steps && (await differencesOf(steps))
    if (steps && !differences && !isAllowed(key, true)) return refuseLate(request, sign)
    metrics.answered(differences ? 'ixfr' : 'axfr')
    const records = () => (differences ? changesOf(version, differences) : wholeOf(version))
    const image = { version: version.of, origin, from: differences ? from : null, records }
    if (await sendAll(request, sign, image)) secondaries.sent(origin, request.peer.address, version.serial)
  }

  async function refuse(request: TransferRequest, sign: Signer | null, rcode: number): Promise<void> {
    metrics.answered('refused')
    const answer = refusal(request.message, request.query, rcode)
    await (sign ? request.send(sign(answer)) : request.refuse(answer))
  }

  /** Null if the request was answered with an error. */
  async function authenticated(request: TransferRequest): Promise<Requester | null> {
    const { message, query, peer } = request
    if (query.opcode === opcodes.NOTIFY && readTsig(message) === null) {
      await refuse(request, null, rcodes.NOTIMP)
      return null
    }
    const refused = async (answer: Buffer) => {
      const wrong = (answer[3]! & 0x0f) === rcodes.NOTAUTH
      metrics.answered(wrong ? 'badsig' : 'refused')
      if (wrong) log.debug({ peer: peer.address }, 'a request was not signed as it must be')
      await request.refuse(answer)
    }
    const found = await authenticate({ ...request, refuse: refused }, findKey, now)
    return found && { key: found.key, sign: found.sign }
  }

  function findKey(keyName: string): RequestKey | null {
    return key && keyName === wireName(key.name) ? key : (keys?.find(keyName) ?? null)
  }

  /** The zone, if the key may transfer it: the platform's key may transfer all, a zone's key only that zone. */
  function versionFor(origin: string, requester: RequestKey): Version | null {
    if (requester === key) return versionOf(origin)
    const { purpose, domainId } = requester
    return purpose === 'transfer' && served.zones.get(origin)?.id === domainId ? versionOf(origin) : null
  }

  /** Any other signed query gets the ordinary answer. */
  async function answerOrdinary(request: TransferRequest, requester: Requester): Promise<void> {
    const answer = await request.answer()
    if (answer) await sendSigned(request, requester, answer)
  }

  for (const origin of [...(key ? [catalog.origin] : []), ...served.zones.keys()]) secondaries.notify(origin, 'start')

  return {
    async handle(request) {
      const { message, query } = request
      const requester = await authenticated(request)
      if (!requester) return
      const { key, sign } = requester
      if (query.opcode !== opcodes.QUERY) return refuse(request, sign, rcodes.NOTIMP)
      const transfers = query.type === typeNumbers.AXFR || query.type === typeNumbers.IXFR
      const ours = transfers || query.type === typeNumbers.SOA
      if (!ours || query.rcode !== rcodes.NOERROR || query.class !== classIn) return answerOrdinary(request, requester)
      const origin = nameInQuery(message, query)
      if (transfers) return transfer(request, requester, origin)
      const version = versionFor(origin, key)
      return version ? sendSoa(request, requester, version) : answerOrdinary(request, requester)
    },
    async close() {
      served.close()
      catalog.close()
      await secondaries.close()
    },
  }
}
