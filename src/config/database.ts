// The database and the data directory.
import { resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Text, type Values } from './variables.ts'

export const databaseVariables = {
  DATABASE_URL: Text(),
  DATABASE_POOL: Type.Integer({ minimum: 2, maximum: 500, default: 10 }),
  DATABASE_WORKER_POOL: Type.Integer({ minimum: 4, maximum: 500, default: 10 }),
  DATABASE_LOCK_TIMEOUT_MS: Type.Integer({ minimum: 100, maximum: 10_000, default: 1_000 }),
  DATA_DIR: Text('.berth'),
  MIGRATE: Type.Optional(Type.Boolean()),
}

export function databaseSettings(env: Values<typeof databaseVariables>) {
  return {
    databaseUrl: env.DATABASE_URL || null,
    /** Connections for requests, and for everything else. */
    databasePool: env.DATABASE_POOL,
    databaseWorkerPool: env.DATABASE_WORKER_POOL,
    /** How long a statement of a request may wait for a lock. */
    databaseLockTimeoutMs: env.DATABASE_LOCK_TIMEOUT_MS,
    dataDir: resolve(env.DATA_DIR),
    /** Whether startup applies migrations; null: outside production, and if all roles run in one process. */
    migrate: env.MIGRATE ?? null,
  }
}
