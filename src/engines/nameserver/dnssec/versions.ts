// Creates signed versions of zones after they were read: none is served before all its signatures exist.
import { turn } from '../../../platform/pauses.ts'
import type { ServedSigning } from '../../../services/dns/index.ts'
import type { OutsideAddresses } from '../zones/lookup.ts'
import { NameMap } from '../zones/name-map.ts'
import {
  type ChangeScope,
  entriesOf,
  isSameSigning,
  mapOf,
  openSignatures,
  packSignatures,
  type ZoneSigning,
} from '../zones/signing.ts'
import { signedParts, type Zone } from '../zones/zone.ts'
import { RecordsByName } from '../zones/zone-records.ts'
import type { ChangedRow, ZoneRow, ZoneSource } from '../zones/zone-table.ts'
import { buildChain, buildChainInSteps, type SignedZone } from './chain.ts'
import { scopeOfChange } from './change-scope.ts'
import { setsIn } from './sets.ts'
import { type NeededSignature, neededSignatures, type Signer } from './signer.ts'

/** A zone as it was read, without its signatures. */
export type ReadRow = Omit<ZoneRow, 'signing'> & { signing?: ServedSigning | null }

/** A change of a large zone with its signatures. */
type Changed = Omit<ChangedRow, 'signing'> & Pick<ZoneRow, 'signing'>

/** A change of a signed zone that is being completed. */
type OpenChange = {
  row: ChangedRow
  signing: ServedSigning
  was: SignedZone
  zone: SignedZone
  scope: ChangeScope
  needed: NeededSignature[]
}

/** A zone that is being completed. */
type OpenZone = { row: ReadRow; signing: ServedSigning; zone: SignedZone; needed: NeededSignature[] }

type Completed = { rows: ZoneRow[]; others: string[] }

export type VersionsOptions = {
  signer: Signer
  /** The version of a zone that is served. */
  served(name: string): ZoneSource | undefined
  outside: OutsideAddresses
  /** Creates the zone of a row. */
  draft(row: ZoneRow & { signing: NonNullable<ZoneRow['signing']> }): Zone
}

export type Versions = ReturnType<typeof createVersions>

// Takes some 50 ms of a thread. More is signed in the background.
const maxAtOnce = 300
// Each takes a millisecond.
const setsInAStep = 50
const signaturesInAStep = 1_000
// Adding a name needs four: its set, two of the chain, and the SOA.
const fewMissing = 8
// What is created for signing is freed before the next zones are processed. During startup, V8 would otherwise learn to
// put it into the old generation, at every later change too.
const zonesInAStep = 20

const isUnsigned = (row: { signing?: ServedSigning | null }) => !row.signing

export function createVersions({ signer, served, outside, draft }: VersionsOptions) {
  const bare = (row: ReadRow, signing: ServedSigning) =>
    draft({ ...row, signing: { ...signing, signatures: '', chain: null } }) as SignedZone

  /** In steps, because a zone may have many sets. */
  async function neededIn(
    row: ReadRow,
    signing: ServedSigning,
  ): Promise<{ zone: SignedZone; needed: NeededSignature[] }> {
    const zone = bare(row, signing)
    const chain = typeof row.records === 'string' ? buildChain(zone) : await buildChainInSteps(zone)
    zone.signed.chain = chain
    const needed: NeededSignature[] = []
    for (const one of neededSignatures(row, signing.keys, setsIn(zone, chain, outside))) {
      if (needed.push(one) % setsInAStep === 0) await turn()
    }
    return { zone, needed }
  }

  /** In steps, because a zone may have many signatures. */
  async function mapOfAll(needed: readonly NeededSignature[]): Promise<NameMap<string>> {
    const draft = NameMap.large<string>().edit()
    for (const [index, { key, octets }] of needed.entries()) {
      draft.set(key, octets!)
      if ((index + 1) % signaturesInAStep === 0) await turn()
    }
    return draft.done()
  }

  async function signed({ row, signing, zone, needed }: OpenZone): Promise<ZoneRow> {
    if (typeof row.records !== 'string') {
      return { ...row, signing: { ...signing, signatures: await mapOfAll(needed), chain: zone.signed.chain } }
    }
    const entries = needed.map(({ key, octets }) => [key, octets!] as const)
    const own = { ...signing, signatures: packSignatures(entries), chain: null }
    return { ...row, signing: own, zone: { ...zone, signed: { ...signedParts(own), chain: zone.signed.chain } } }
  }

  /** What a change needs signed; null if only the whole zone could show that. */
  function openChange(row: ChangedRow): OpenChange | null {
    const { before, records, names } = row
    const signing = row.signing!
    if (!before.signing || !(before.records instanceof RecordsByName) || !isSameSigning(before.signing, signing))
      return null
    const was = draft({ ...before, signing: before.signing }) as SignedZone
    const zone = bare(row, signing)
    const scope = scopeOfChange({ zone: was, records: before.records }, { zone, records }, names, outside)
    if (!scope) return null
    const needed = [...neededSignatures(row, signing.keys, setsIn(zone, scope.after, outside))]
    return { row, signing, was, zone, scope, needed }
  }

  /** The signatures of the previous version, except for affected names. */
  function changedSigning({ row, signing, was, zone, scope, needed }: OpenChange): ZoneSigning {
    const { signatures: before, keys } = row.before.signing!
    const signatures = (typeof before === 'string' ? mapOf(entriesOf(before)) : before).edit()
    for (const { key } of neededSignatures(row.before, keys, setsIn(was, scope.before, outside))) signatures.delete(key)
    for (const { key, octets } of needed) signatures.set(key, octets!)
    return { ...signing, signatures: signatures.done(), chain: zone.signed.chain, scope }
  }

  /** Copies signatures from the previous version. Returns those to load from the store; a few missing ones are most likely new. */
  function copyKnown(
    row: ReadRow,
    before: ZoneSource | undefined,
    needed: readonly NeededSignature[],
  ): readonly NeededSignature[] {
    const { id, serial, signing, signaturesSince = Number.POSITIVE_INFINITY } = row
    if (!before?.signing || !signing || before.id !== id || !isSameSigning(before.signing, signing)) return needed
    if (before.serial < signaturesSince || before.serial > serial) return needed
    const known = openSignatures(before.signing.signatures)
    for (const one of needed) one.octets = known.get(one.key) ?? null
    const missing = signer.missingOf(needed)
    return signer.signs && missing.length <= fewMissing ? [] : missing
  }

  async function completeStep(rows: readonly ReadRow[]): Promise<Completed> {
    const open: OpenZone[] = []
    for (const row of rows)
      if (row.signing) open.push({ row, signing: row.signing, ...(await neededIn(row, row.signing)) })
    await signer.load(open.flatMap(({ row, needed }) => copyKnown(row, served(row.name), needed)))
    const isFew = ({ needed }: { needed: NeededSignature[] }) => signer.missingOf(needed).length <= maxAtOnce
    const some = open.filter(isFew)
    await signer.complete(some.flatMap(({ needed }) => needed)).catch(() => {})
    const ready = some.filter(({ needed }) => signer.missingOf(needed).length === 0)
    return {
      rows: await Promise.all(ready.map(signed)),
      others: open.filter((one) => !ready.includes(one)).map(({ row }) => row.name),
    }
  }

  return {
    /** For zones that were read together. Those that take long to sign, or can't be signed, are left to `completeAlone`. */
    async completeSome(rows: readonly ReadRow[]): Promise<Completed> {
      const done: Completed = { rows: [], others: [] }
      for (let at = 0; at < rows.length; at += zonesInAStep) {
        const step = rows.slice(at, at + zonesInAStep)
        done.rows.push(...step.filter(isUnsigned).map((row) => ({ ...row, signing: null })))
        const { rows: signed, others } = await completeStep(step)
        done.rows.push(...signed)
        done.others.push(...others)
      }
      return done
    },

    /** For changes of large zones. Those that take long to sign, or can't be signed, are left to `completeAlone`. */
    async completeChanges(rows: readonly ChangedRow[]): Promise<{ rows: Changed[]; others: string[] }> {
      const done: Changed[] = []
      const others: string[] = []
      const open: OpenChange[] = []
      for (const row of rows) {
        const change = isUnsigned(row) ? null : openChange(row)
        if (isUnsigned(row)) done.push({ ...row, signing: null })
        else if (change) open.push(change)
        else others.push(row.name)
      }
      const all = open.flatMap(({ needed }) => needed)
      await signer.load(open.flatMap(({ row, needed }) => copyKnown(row, row.before, needed)))
      const isLong = signer.missingOf(all).length > maxAtOnce
      if (!isLong) await signer.complete(all).catch(() => {})
      for (const change of open) {
        if (signer.missingOf(change.needed).length > 0) others.push(change.row.name)
        else done.push({ ...change.row, signing: changedSigning(change) })
      }
      return { rows: done, others }
    },

    /** Signs everything. Fails if that isn't possible, or the zone has a newer version by now. */
    async completeAlone(row: ReadRow): Promise<ZoneRow> {
      if (isUnsigned(row)) return { ...row, signing: null }
      const { zone, needed } = await neededIn(row, row.signing!)
      await signer.load(needed)
      await signer.complete(needed)
      if (signer.missingOf(needed).length > 0) throw new Error(`${row.name} could not be signed: a key is gone`)
      return signed({ row, signing: row.signing!, zone, needed })
    },
  }
}
