// Signatures of zones: each is made once, and whoever serves the zone serves this one.
import { type Db, violation } from '../../platform/database.ts'
import { insertSignatureRows, readSignatureRows } from './signature-statements.ts'

/** Fingerprints, names and signatures are texts of octets. */
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

/** In the order asked for; null for those that are not made yet. */
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

/** Signatures that others have added first, or whose key is gone, are left out. */
export async function addSignatures(db: Db, made: readonly NewSignature[]): Promise<void> {
  const values = {
    keyIds: made.map(({ keyId }) => keyId),
    fingerprints: made.map(({ fingerprint }) => octetsOf(fingerprint)),
    names: made.map(({ name }) => octetsOf(name)),
    types: made.map(({ type }) => type),
    octets: made.map(({ octets }) => octetsOf(octets)),
    renewAts: made.map(({ renewAt }) => renewAt.toISOString()),
  }
  await insertSignatureRows(db, values).catch((error) => {
    // A key was deleted meanwhile: the zone has a newer version without it.
    if (violation(error)?.kind !== 'foreign') throw error
  })
}

/** The sealed private keys by id; what does not come back is deleted. */
export async function readPrivateKeys(db: Db, ids: string[]): Promise<Map<string, Uint8Array>> {
  const found = await db.zoneKey.findMany({ where: { id: { in: ids } }, select: { id: true, privateKey: true } })
  return new Map(found.map(({ id, privateKey }) => [id, privateKey]))
}
