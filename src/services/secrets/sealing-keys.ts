// Checks the sealing keys: a wrong SECRETS_KEY is refused at startup, and readiness names missing old keys.
import type { Database, Db } from '../../platform/database/database.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { lockSealingKeys, sealedColumns } from './statements.ts'

/** SECRETS_KEY opens no stored secret. The message says what to do. */
export class WrongKey extends Error {
  override name = 'WrongKey'
}

function wrongKey(vault: Vault, sealedWith: string): WrongKey {
  return new WrongKey(
    `SECRETS_KEY (${vault.keyId}) is not the key of this database, whose secrets are sealed with ${sealedWith}: set SECRETS_KEY to that key or, to replace it, add it to SECRETS_KEY_OLD.`,
  )
}

function opens(vault: Vault, sealed: Uint8Array, place: string): boolean {
  try {
    vault.open(sealed, place)
    return true
  } catch {
    return false
  }
}

/** Checks a database from before canaries existed by opening one value of each kind. */
async function opensStored(db: Db, vault: Vault): Promise<boolean> {
  let tried = 0
  for (const { readStale, place } of sealedColumns) {
    const [row] = await readStale(db, {
      header: vault.header,
      afterFirst: '',
      afterSecond: '',
      afterThird: '',
      limit: 1,
    })
    if (!row) continue
    if (opens(vault, row.sealed, place(row.first, row.second))) return true
    tried++
  }
  return tried === 0
}

export type Admission = {
  /** Whether the key has sealed nothing before. */
  isNew: boolean
  /** Keys that may have sealed something and that this process lacks. */
  missing: string[]
}

/**
 * Admits the key that seals from now on. The first start writes its canary. Later starts must open it, or the canary of
 * a key that is being replaced. Throws WrongKey.
 */
export async function admitKey(db: Database, vault: Vault): Promise<Admission> {
  return db.$transaction(async (db) => {
    // Serializes concurrent first starts, so the second one with a different key is refused.
    await lockSealingKeys(db, {})
    const keys = await db.sealingKey.findMany({ orderBy: { createdAt: 'asc' } })
    const own = keys.find(({ id }) => id === vault.keyId)
    const candidates = own ? [own] : keys
    const isRight =
      keys.length > 0
        ? candidates.some(({ id, canary }) => opens(vault, canary, placeOf.canary(id)))
        : await opensStored(db, vault)
    if (!isRight) throw wrongKey(vault, keys.map(({ id }) => id).join(', ') || 'another one')
    const missing = keys.map(({ id }) => id).filter((id) => !vault.knows(id))
    if (own) return { isNew: false, missing }
    const canary = Uint8Array.from(vault.seal(vault.keyId, placeOf.canary(vault.keyId)))
    await db.sealingKey.create({ data: { id: vault.keyId, canary } })
    return { isNew: true, missing }
  })
}

/**
 * A readiness check that fails while something may be sealed with a key that this process was started without. It
 * ignores keys that are added later, because a rotation restarts processes one by one.
 */
export function secretsReadiness(db: Db, { missing }: Admission): () => Promise<string | null> {
  return async () => {
    if (missing.length === 0) return null
    const where = { id: { in: missing } }
    // Without the database, use the result from startup.
    const left = await db.sealingKey
      .findMany({ where, select: { id: true } })
      .catch(() => missing.map((id) => ({ id })))
    if (left.length > 0) {
      return `Secrets are sealed with the key ${left.map(({ id }) => id).join(', ')}, which SECRETS_KEY and SECRETS_KEY_OLD lack: put it back into SECRETS_KEY_OLD, and drop it when \`berth secrets rotate\` says so.`
    }
    // The process may lack secrets that it could not open at startup, such as keys of certificates.
    return `This process was started without the key ${missing.join(', ')}. Nothing is sealed with it any more: restart the process.`
  }
}
