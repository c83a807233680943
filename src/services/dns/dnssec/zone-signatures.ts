// Signatures of zones: each is created once and shared by all nameservers.
import { type Database, type Db, inTransaction, violation } from '../../../platform/database/database.ts'
import { noteChangedNames } from '../sql/alias-statements.ts'
import {
  deleteSignatureRows,
  dueSignatureRows,
  insertSignatureRows,
  lockZoneSerial,
  postponeSignatureRows,
  readPrivateKeyRows,
  readSignatureRows,
  renewSignatureRows,
} from '../sql/signature-statements.ts'

/** Fingerprints, names and signatures are latin1 strings of bytes. */
export type WantedSignature = { keyId: string; fingerprint: string; serial: number }
export type NewSignature = {
  keyId: string
  fingerprint: string
  name: string
  type: number
  octets: string
  renewAt: Date
}

const octetsOf = (text: string) => Buffer.from(text, 'latin1')

/** Returns signatures in the requested order; null for missing ones. */
export async function readSignatures(db: Db, wanted: readonly WantedSignature[]): Promise<(string | null)[]> {
  const found: (string | null)[] = wanted.map(() => null)
  if (wanted.length === 0) return found
  const rows = await readSignatureRows(db, {
    keyIds: wanted.map(({ keyId }) => keyId),
    fingerprints: wanted.map(({ fingerprint }) => octetsOf(fingerprint)),
    serials: wanted.map(({ serial }) => serial),
  })
  for (const { place, octets } of rows) found[place - 1] = Buffer.from(octets).toString('latin1')
  return found
}

type Named = { keyId: string; fingerprint: string }

const columnsOf = (named: readonly Named[]) => ({
  keyIds: named.map(({ keyId }) => keyId),
  fingerprints: named.map(({ fingerprint }) => octetsOf(fingerprint)),
})

const newColumnsOf = (signatures: readonly NewSignature[]) => ({
  ...columnsOf(signatures),
  names: signatures.map(({ name }) => octetsOf(name)),
  types: signatures.map(({ type }) => type),
  octets: signatures.map(({ octets }) => octetsOf(octets)),
  renewAts: signatures.map(({ renewAt }) => renewAt.toISOString()),
})

/** Adds signatures and returns their number. Skips existing ones and those of deleted keys. */
export async function addSignatures(db: Db, signatures: readonly NewSignature[]): Promise<number> {
  const added = await insertSignatureRows(db, newColumnsOf(signatures)).catch((error) => {
    // A key was deleted concurrently, so the zone has a newer version without it.
    if (violation(error)?.kind !== 'foreign') throw error
    return []
  })
  return added[0]?.count ?? 0
}

/** The sealed private keys by id; missing ones were deleted. */
export async function readPrivateKeys(db: Db, ids: string[]): Promise<Map<string, Uint8Array>> {
  const found = await readPrivateKeyRows(db, { ids })
  return new Map(found.map(({ id, privateKey }) => [id, privateKey]))
}

/** `domainId` and `zone` are null for the platform's own zone. */
export type DueSignature = Named & {
  name: string
  type: number
  octets: string
  domainId: string | null
  zone: string | null
}

/** Signatures that are due, oldest first. */
export async function dueSignatures(db: Db, now: Date, limit: number): Promise<DueSignature[]> {
  const textOf = (octets: Uint8Array) => Buffer.from(octets).toString('latin1')
  const rows = await dueSignatureRows(db, { now, limit })
  return rows.map(({ fingerprint, name, octets, keyId, type, domainId, zone }) => {
    const texts = { fingerprint: textOf(fingerprint), name: textOf(name), octets: textOf(octets) }
    return { keyId, type, domainId, zone, ...texts }
  })
}

/** The outcome for the due signatures of one version of a zone. */
export type Settlement = {
  domainId: string | null
  zone: string
  serial: number
  renewed: readonly NewSignature[]
  /** No longer in use. */
  unused: readonly Named[]
  /** Due again later. */
  kept: readonly Named[]
  keptUntil: Date
  /** Names whose signatures are renewed; nameservers process only these in a large zone. */
  names: readonly string[]
  /** The version is too old, so a new one is created, with a new signature of its SOA. */
  raise: boolean
}

/** Creates the zone version from which the renewed signatures are in use. Returns false if the zone has changed. */
export async function settleSignatures(db: Database, settlement: Settlement): Promise<boolean> {
  const { domainId, zone, serial, renewed, unused, kept, keptUntil, names, raise } = settlement
  return inTransaction(db, async (db) => {
    const [locked] = await lockZoneSerial(db, { domainId, name: zone })
    if (locked?.serial !== serial) return false
    if (unused.length > 0) await deleteSignatureRows(db, columnsOf(unused))
    if (kept.length > 0) await postponeSignatureRows(db, { ...columnsOf(kept), until: keptUntil })
    const signatures =
      renewed.length > 0 ? await renewSignatureRows(db, { serial: serial + 1, ...newColumnsOf(renewed) }) : []
    if (!raise && (signatures[0]?.count ?? 0) === 0) return true
    const data = { serial: { increment: 1 } }
    if (domainId === null) await db.platformZone.update({ where: { name: zone }, data })
    else {
      await db.domain.update({ where: { id: domainId }, data })
      if (names.length > 0) await noteChangedNames(db, { zoneId: domainId, names: [...names] })
    }
    return true
  })
}

/** Postpones signatures. */
export async function postponeSignatures(db: Db, named: readonly Named[], until: Date): Promise<void> {
  await postponeSignatureRows(db, { ...columnsOf(named), until })
}
