// Checks SECRETS_KEY at the start or, if the database is away then, when it is back.
import { setTimeout as delay } from 'node:timers/promises'
import { admitKey, secretsReadiness, WrongKey } from '../services/secrets/sealing-keys.ts'
import type { Shared } from './shared.ts'

const retryMs = 1_000

type SecretsDeps = Pick<Shared, 'db' | 'vault' | 'health' | 'log' | 'away' | 'migrated'>

/** Throws WrongKey; if the database was away, readiness of the roles says so instead, because they serve already. */
export async function openSecrets(deps: SecretsDeps, roles: readonly string[]): Promise<void> {
  const { db, vault, health, away } = deps
  if (away) return void admitLater(deps, roles)
  health.add('secrets', secretsReadiness(db, await admitKey(db, vault)), roles)
}

async function admitLater({ db, vault, health, log, migrated }: SecretsDeps, roles: readonly string[]): Promise<void> {
  await migrated
  for (;;) {
    try {
      health.add('secrets', secretsReadiness(db, await admitKey(db, vault)), roles)
      return
    } catch (err) {
      if (err instanceof WrongKey) {
        log.error({ err }, 'the database is back, and has another key')
        health.add('secrets', () => err.message, roles)
        return
      }
      await delay(retryMs, undefined, { ref: false })
    }
  }
}
