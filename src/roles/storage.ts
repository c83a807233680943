// The database: the configured one, or an embedded one that runs as long as this process.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { migrate } from '../../prisma/migrate.ts'
import { type Config, ConfigError } from '../config.ts'
import { startEmbeddedPostgres } from '../embedded-postgres/index.ts'
import { findRunningPostgres } from '../embedded-postgres/running.ts'
import { closeDatabase, type Database, isDatabaseLost, openDatabase } from '../platform/database.ts'
import { openReadiness, type Readiness } from '../platform/readiness.ts'
import { makeDataDirectory } from './first-start.ts'

export type Postgres = {
  url: string
  /** Whether another process runs it, and migrates it. */
  shared: boolean
  /** Resolves with a sentence if the embedded database ends unexpectedly. */
  broken: Promise<string>
  close(): Promise<void>
}

export type Storage = Postgres & {
  /** For requests. */
  db: Database
  /** For jobs and everything else that no caller waits for. */
  workerDb: Database
  readiness: Readiness
  /** Whether the database could not be reached. */
  away: boolean
  /** Resolves when the database has this program's schema: at once, unless it was away. */
  migrated: Promise<void>
}

export type StorageOptions = {
  /** A command may use the embedded database of a server that runs. */
  beside?: boolean
  /** A database that cannot be reached is no reason to fail: it is migrated when it is back. */
  patient?: Logger | undefined
}

const retryMs = 1_000

/** The file that says that a restore has not ended; nothing starts on such a directory. */
export const restoreMark = (dataDir: string) => resolve(dataDir, 'restore-incomplete')

export function refuseHalfRestored(dataDir: string): void {
  if (!existsSync(restoreMark(dataDir))) return
  throw new ConfigError(
    `${dataDir} is the place of a restore that did not end, so it is not complete. Empty it and restore again.`,
  )
}

/** A command may use the embedded database of a server that runs (`beside`); a server wants its own. */
export async function openPostgres(config: Config, { beside }: { beside: boolean }): Promise<Postgres> {
  const broken = new Promise<string>(() => {})
  if (config.databaseUrl) return { url: config.databaseUrl, shared: false, broken, close: async () => {} }
  const directory = join(config.dataDir, 'postgres')
  const running = beside ? await findRunningPostgres(directory) : null
  if (running) return { url: running, shared: true, broken, close: async () => {} }
  const embedded = await startEmbeddedPostgres({ directory })
  return { url: embedded.url('postgres'), shared: false, broken: embedded.exited, close: () => embedded.stop() }
}

export async function openStorage(config: Config, { beside = false, patient }: StorageOptions = {}): Promise<Storage> {
  refuseHalfRestored(config.dataDir)
  await makeDataDirectory(config.dataDir)
  const postgres = await openPostgres(config, { beside })
  const closed = new AbortController()
  let away = false
  try {
    if (!postgres.shared) await migrate(postgres.url)
  } catch (error) {
    if (!patient || !isDatabaseLost(error)) {
      await postgres.close()
      throw error
    }
    away = true
    patient.warn({ err: error }, 'the database is away')
  }
  const db = openDatabase(postgres.url, config.databasePool, { limits: { lockMs: config.databaseLockTimeoutMs } })
  const workerDb = openDatabase(postgres.url, config.databaseWorkerPool, { class: 'workers' })
  const readiness = openReadiness(postgres.url)
  return {
    ...postgres,
    db,
    workerDb,
    readiness,
    away,
    migrated: away ? migrateLater(postgres.url, patient!, closed.signal) : Promise.resolve(),
    async close() {
      closed.abort()
      await Promise.all([closeDatabase(db), closeDatabase(workerDb), readiness.close()])
      await postgres.close()
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
