// Outgoing zone transfers: answers signed requests, notifies secondaries, and lists all zones in a catalog.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { listenAddress } from '../../../dns/listen-address.ts'
import { classIn, opcodes, rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { nameInQuery } from '../../../dns/packet/query.ts'
import { textName } from '../../../dns/packet/wire-names.ts'
import { createEncoder } from '../encode.ts'
import type { OutsideAddresses, OwnedSet } from '../lookup.ts'
import type { Snapshot } from '../snapshot.ts'
import type { TransferRequest, Transfers } from '../transfers.ts'
import type { Rrset } from '../zone.ts'
import { createCatalog } from './catalog.ts'
import { createJournal, isNewer } from './journal.ts'
import { knownSerial, messageOctets, packed, refusal, udpLimit } from './messages.ts'
import { createTransferMetrics } from './metrics.ts'
import { createNotifier } from './notify.ts'
import { type Difference, differenceOf, soaOf, zoneRecords } from './records.ts'
import { followZones, type ZoneChange } from './served-zones.ts'
import { createSigner, readTsig, type Signer, signError, type TsigKey, tsigErrors, verify } from './tsig.ts'

export type TransfersOptions = {
  snapshot: Snapshot
  /** Addresses from outside the zones: ALIAS records are transferred as addresses. */
  outside: OutsideAddresses
  key: TsigKey
  /** `address:port` */
  secondaries: readonly string[]
  log: Logger
  registry?: Registry
  /** Unix time in seconds. */
  now?: () => number
}

export type RunningTransfers = Transfers & { close(): Promise<void> }

/** One version of a zone or of the catalog. */
type Version = { origin: string; serial: number; soa: Rrset; records(): Promise<OwnedSet[]> }

export function createTransfers(options: TransfersOptions): RunningTransfers {
  const { snapshot, outside, key, log, now = () => Math.floor(Date.now() / 1000) } = options
  const { table } = snapshot
  const encoder = createEncoder()
  const metrics = createTransferMetrics(options.registry)
  const journal = createJournal()
  const served = followZones(snapshot, onZones)
  const catalog = createCatalog(served.zones, onCatalog, now)
  const notifier = createNotifier({
    key,
    secondaries: options.secondaries.map(listenAddress),
    soaOf: (origin) => currentSoa(origin),
    onEnd: metrics.notified,
    log,
    now,
  })

  function currentSoa(origin: string): Rrset | null {
    if (origin === catalog.origin) return catalog.soa()
    const source = served.zones.get(origin)
    return source ? soaOf(table, source) : null
  }

  function onZones(changes: ZoneChange[]): void {
    for (const { origin, before, after } of changes) {
      const same = before !== null && after?.id === before.id
      if (!same) catalog.touch(origin)
      if (same && before.serial === after.serial) continue
      const grown = same && isNewer(after.serial, before.serial)
      const difference = grown ? differenceOf(table, before, after, outside) : null
      if (difference) journal.add(origin, difference)
      else journal.drop(origin)
      if (after) notifier.notify(origin)
    }
  }

  function onCatalog(difference: Difference): void {
    journal.add(catalog.origin, difference)
    notifier.notify(catalog.origin)
  }

  function versionOf(origin: string): Version | null {
    if (origin === catalog.origin) {
      return { origin, serial: catalog.serial, soa: catalog.soa(), records: async () => catalog.records() }
    }
    const source = served.zones.get(origin)
    if (!source) return null
    const records = async () =>
      zoneRecords(table.zoneOf(source), outside, (owner) =>
        log.warn({ zone: source.name, name: textName(owner) }, 'an ALIAS was transferred without addresses'),
      )
    return { origin, serial: source.serial, soa: soaOf(table, source), records }
  }

  /** Null if the changes since that serial are not known. */
  function incremental({ origin, serial, soa }: Version, from: number): OwnedSet[] | null {
    const chain = journal.since(origin, from)
    if (chain?.at(-1)?.to !== serial) return null
    const own = (set: Rrset): OwnedSet => ({ owner: origin, set })
    const parts = chain.flatMap((one) => [own(one.fromSoa), ...one.removed, own(one.toSoa), ...one.added])
    return [own(soa), ...parts, own(soa)]
  }

  async function whole({ origin, soa, records }: Version): Promise<OwnedSet[]> {
    const own = { owner: origin, set: soa }
    return [own, ...(await records()), own]
  }

  async function sendAll({ message, query, send }: TransferRequest, sign: Signer, records: OwnedSet[]) {
    for (const one of packed(encoder, { message, query }, records)) {
      await send(sign(one))
      // A large zone and a fast secondary must not delay other queries.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** The SOA alone means that nothing changed, or over UDP that the answer does not fit. */
  async function sendSoa(request: TransferRequest, sign: Signer, { origin, soa }: Version): Promise<void> {
    const [one] = packed(encoder, request, [{ owner: origin, set: soa }])
    if (one) await sendSigned(request, sign, one)
  }

  async function sendSigned({ message, query, tcp, send }: TransferRequest, sign: Signer, answer: Buffer) {
    // An upper bound: the size of the signature is known only after signing, and a signed answer must be sent.
    const roomOctets = key.name.length + 80
    const fits = tcp || answer.length + roomOctets <= udpLimit(query)
    await send(sign(fits ? answer : refusal(message, query, rcodes.NOERROR, true)))
  }

  async function transfer(request: TransferRequest, sign: Signer, version: Version): Promise<void> {
    const { message, query, tcp } = request
    const ixfr = query.type === typeNumbers.IXFR
    const from = ixfr ? knownSerial(message, query) : null
    if (ixfr && from === null) return refuse(request, sign, rcodes.FORMERR)
    if (!ixfr && !tcp) return refuse(request, sign, rcodes.REFUSED)
    if (from !== null && !isNewer(version.serial, from)) {
      metrics.answered('current')
      return sendSoa(request, sign, version)
    }
    const difference = from === null ? null : incremental(version, from)
    if (!tcp) {
      const messages = difference ? [...packed(encoder, { message, query }, difference, messageOctets)] : []
      const fits = messages.length === 1 && messages[0]!.length + key.name.length + 80 <= udpLimit(query)
      metrics.answered(fits ? 'ixfr' : 'current', fits ? difference!.length : 0)
      return fits ? sendSigned(request, sign, messages[0]!) : sendSoa(request, sign, version)
    }
    const records = difference ?? (await whole(version))
    metrics.answered(difference ? 'ixfr' : 'axfr', records.length)
    await sendAll(request, sign, records)
  }

  async function refuse(request: TransferRequest, sign: Signer | null, rcode: number): Promise<void> {
    metrics.answered('refused')
    const answer = refusal(request.message, request.query, rcode)
    await (sign ? request.send(sign(answer)) : request.refuse(answer))
  }

  /** The signer of the answers, or null if the request was answered with an error. */
  async function checked(request: TransferRequest): Promise<Signer | null> {
    const { message, query, peer, tcp } = request
    const tsig = readTsig(message)
    if (tsig === null) {
      await refuse(request, null, query.opcode === opcodes.NOTIFY ? rcodes.NOTIMP : rcodes.REFUSED)
      return null
    }
    const nowSeconds = now()
    const verdict = tsig === 'malformed' ? tsig : verify(message, tsig, { key, nowSeconds })
    if (tsig === 'malformed' || verdict === 'malformed') {
      await refuse(request, null, rcodes.FORMERR)
      return null
    }
    if (verdict !== tsigErrors.NONE) {
      metrics.answered('badsig')
      log.debug({ peer: peer.address, error: verdict }, 'a request was not signed as it must be')
      const plain = refusal(message, query, rcodes.NOTAUTH)
      const answer = signError(plain, tsig, verdict, { key, nowSeconds })
      // Names are sent uncompressed; an answer to a forged address must not be larger than the request.
      const swollen = !tcp && verdict !== tsigErrors.BADTIME && answer.length > message.length
      await request.refuse(swollen ? plain : answer)
      return null
    }
    return createSigner(key, tsig.mac, now)
  }

  /** Any other signed query gets the ordinary answer. */
  async function answerAsUsual(request: TransferRequest, sign: Signer): Promise<void> {
    const answer = await request.answer()
    if (answer) await sendSigned(request, sign, answer)
  }

  for (const origin of [catalog.origin, ...served.zones.keys()]) notifier.notify(origin)

  return {
    async handle(request) {
      const { message, query } = request
      const sign = await checked(request)
      if (!sign) return
      if (query.opcode !== opcodes.QUERY) return refuse(request, sign, rcodes.NOTIMP)
      const transfers = query.type === typeNumbers.AXFR || query.type === typeNumbers.IXFR
      const ours = transfers || query.type === typeNumbers.SOA
      if (!ours || query.rcode !== rcodes.NOERROR || query.class !== classIn) return answerAsUsual(request, sign)
      const version = versionOf(nameInQuery(message, query))
      if (transfers) return version ? transfer(request, sign, version) : refuse(request, sign, rcodes.NOTAUTH)
      return version ? sendSoa(request, sign, version) : answerAsUsual(request, sign)
    },
    async close() {
      served.close()
      catalog.close()
      await notifier.close()
    },
  }
}
