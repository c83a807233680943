// `berth dnssec`: signs the platform's own zone, and prints the DS record for its registrar.
import type { Config } from '../config.ts'
import { createVault } from '../platform/secrets/secrets.ts'
import { readSecretsKey } from '../roles/opening/first-start.ts'
import { openStorage } from '../roles/opening/storage.ts'
import { platformDs, signPlatformZone, unsignPlatformZone } from '../services/dns/index.ts'

export async function dnssec(config: Config, verb: 'on' | 'off' | undefined): Promise<void> {
  const { db, close } = await openStorage(config)
  try {
    if (verb === 'off') await unsignPlatformZone(db)
    if (verb === 'on') {
      await signPlatformZone(db, createVault(await readSecretsKey(config), config.oldSecretsKeys))
    }
    const zone = config.edge.domain.toLowerCase()
    const ds = await platformDs(db, zone)
    if (ds.length === 0) return console.log(`${zone} is not signed; \`berth dnssec on\` signs it.`)
    for (const text of ds) console.log(`${zone}. IN DS ${text}`)
  } finally {
    await close()
  }
}
