// Checks at the start that SECRETS_KEY is the key of the database, and tells readiness of keys that are missing.
import { type Database, isDatabaseLost } from '../platform/database.ts'
import type { Health } from '../platform/health.ts'
import type { Vault } from '../platform/secrets.ts'
import { admitKey, secretsReadiness } from '../services/secrets/sealing-keys.ts'

/** A wrong key ends the start. An edge may start while the database is away; its key is checked when that is back. */
export async function openSecrets(
  { db, vault, health }: { db: Database; vault: Vault; health: Health },
  roles: readonly string[],
): Promise<void> {
  // Nameservers open no secrets, and may run without the key.
  const sealing = roles.filter((role) => role !== 'nameserver')
  if (sealing.length === 0) return
  const mayWait = sealing.every((role) => role === 'edge')
  const admission = await admitKey(db, vault).catch((error) => {
    if (mayWait && isDatabaseLost(error)) return null
    throw error
  })
  health.add('secrets', secretsReadiness(db, vault, admission), sealing)
}
