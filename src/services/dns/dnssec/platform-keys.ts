// The key of the platform's own zone. The operator sets its DS record, so nothing here is automatic.
import { dsTextOf } from '../../../dns/dnssec/ds-texts.ts'
import type { Db } from '../../../platform/database/database.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import { createZoneKey } from './zone-keys.ts'

const where = { domainId: null }

/** Signs the zone, unless it is signed. */
export async function signPlatformZone(db: Db, vault: Vault): Promise<void> {
  if ((await db.zoneKey.count({ where })) > 0) return
  await db.zoneKey.create({ data: createZoneKey(vault, null, { published: true, signing: true, announced: true }) })
}

/** Deletes the keys without waiting. Call it only once the DS record has been gone for its TTL. */
export async function unsignPlatformZone(db: Db): Promise<void> {
  await db.zoneKey.deleteMany({ where })
}

/** The DS records of the zone as texts, empty if it is unsigned. */
export async function platformDs(db: Db, zone: string): Promise<string[]> {
  const keys = await db.zoneKey.findMany({ where, orderBy: { id: 'asc' } })
  return keys.map((key) => dsTextOf(zone, key))
}
