// Checks SECRETS_KEY at startup or, if the database is down then, once it is back.
import { setTimeout as delay } from 'node:timers/promises'
import { isTimedOut } from '../../platform/database/database.ts'
import { admitKey, secretsReadiness, WrongKey } from '../../services/secrets/index.ts'
import type { Shared } from './shared.ts'

const retryMs = 1_000

type SecretsDeps = Pick<Shared, 'db' | 'workerDb' | 'vault' | 'health' | 'log' | 'away' | 'migrated'>

/** Throws WrongKey. If the database was down, readiness of the roles reports it instead, because they already serve. */
export async function openSecrets(deps: SecretsDeps, roles: readonly string[]): Promise<void> {
  if (deps.away) return void admitLater(deps, roles)
  // Processes that start together take turns, which may exceed the lock timeout of a statement.
  await admit(deps, roles, isTimedOut)
}

async function admit(
  { db, workerDb, vault, health }: SecretsDeps,
  roles: readonly string[],
  isTemporary: (error: unknown) => boolean,
): Promise<void> {
  for (;;) {
    try {
      health.add('secrets', secretsReadiness(db, await admitKey(workerDb, vault)), roles)
      return
    } catch (error) {
      if (!isTemporary(error)) throw error
      await delay(retryMs, undefined, { ref: false })
    }
  }
}

async function admitLater(deps: SecretsDeps, roles: readonly string[]): Promise<void> {
  await deps.migrated
  try {
    await admit(deps, roles, (error) => !(error instanceof WrongKey))
  } catch (err) {
    deps.log.error({ err }, 'the database is back, but uses another key')
    deps.health.add('secrets', () => (err as Error).message, roles)
  }
}
