// `berth dnssec`: signs the platform's own zone, and prints the DS record that belongs at its registrar.
import type { Config } from '../config.ts'
import { dsTextOf } from '../dns/dnssec/ds-texts.ts'
import { createVault } from '../platform/secrets.ts'
import { readSecretsKey } from '../roles/first-start.ts'
import { openStorage } from '../roles/storage.ts'
import { createZoneKey } from '../services/dns/zone-keys.ts'

const use = { published: true, signing: true, announced: true }

/** `off` is for when the registrar has had no DS record for its TTL: nothing else waits for that here. */
export async function dnssec(config: Config, verb: 'on' | 'off' | undefined): Promise<void> {
  const { db, close } = await openStorage(config)
  const where = { domainId: null }
  try {
    if (verb === 'off') await db.zoneKey.deleteMany({ where })
    if (verb === 'on' && (await db.zoneKey.count({ where })) === 0) {
      const vault = createVault(await readSecretsKey(config), config.oldSecretsKeys)
      await db.zoneKey.create({ data: createZoneKey(vault, null, use) })
    }
    const zone = config.edge.domain.toLowerCase()
    const keys = await db.zoneKey.findMany({ where, orderBy: { id: 'asc' } })
    if (keys.length === 0) return console.log(`${zone} is not signed; \`berth dnssec on\` signs it.`)
    for (const key of keys) console.log(`${zone}. IN DS ${dsTextOf(zone, key)}`)
  } finally {
    await close()
  }
}
