// The database: the configured one, or an embedded one that runs as long as this process.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { migrate } from '../../prisma/migrate.ts'
import type { Config } from '../config.ts'
import { startEmbeddedPostgres } from '../embedded-postgres/index.ts'
import { closeDatabase, type Database, isDatabaseLost, openDatabase } from '../platform/database.ts'
import { openReadiness, type Readiness } from '../platform/readiness.ts'
import { makeDataDirectory } from './first-start.ts'

export type Storage = {
  /** For requests. */
  db: Database
  /** For jobs and everything else that no caller waits for. */
  workerDb: Database
  readiness: Readiness
  url: string
  /** Resolves with a sentence if the embedded database ends unexpectedly. */
  broken: Promise<string>
  /** Whether the database could not be reached. */
  away: boolean
  /** Resolves when the database has this program's schema: at once, unless it was away. */
  migrated: Promise<void>
  close(): Promise<void>
}

const retryMs = 1_000

export type StorageOptions = {
  /** A database that cannot be reached is no reason to fail: it is migrated when it is back. */
  patient?: Logger | undefined
}

export async function openStorage(config: Config, { patient }: StorageOptions = {}): Promise<Storage> {
  await makeDataDirectory(config.dataDir)
  const embedded = config.databaseUrl
    ? null
    : await startEmbeddedPostgres({ directory: join(config.dataDir, 'postgres') })
  const url = config.databaseUrl ?? embedded!.url('postgres')
  const closed = new AbortController()
  let away = false
  try {
    await migrate(url)
  } catch (error) {
    await embedded?.stop()
    if (!patient || !isDatabaseLost(error)) throw error
    away = true
    patient.warn({ err: error }, 'the database is away')
  }
  const db = openDatabase(url, config.databasePool, { lockMs: config.databaseLockTimeoutMs })
  const workerDb = openDatabase(url, config.databaseWorkerPool, { class: 'workers' })
  const readiness = openReadiness(url)
  return {
    db,
    workerDb,
    readiness,
    url,
    broken: embedded?.exited ?? new Promise(() => {}),
    away,
    migrated: away ? migrateLater(url, patient!, closed.signal) : Promise.resolve(),
    async close() {
      closed.abort()
      await Promise.all([closeDatabase(db), closeDatabase(workerDb), readiness.close()])
      await embedded?.stop()
    },
  }
}

/** Never rejects: a role that serves goes on, and this is tried again. */
async function migrateLater(url: string, log: Logger, signal: AbortSignal): Promise<void> {
  let told: string | null = null
  for (;;) {
    try {
      await delay(retryMs, undefined, { signal, ref: false })
    } catch {
      return new Promise(() => {})
    }
    try {
      await migrate(url)
      return
    } catch (err) {
      const { message } = err as Error
      if (!isDatabaseLost(err) && message !== told) log.error({ err }, 'the database is back and cannot be migrated')
      told = message
    }
  }
}
