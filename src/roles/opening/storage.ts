// The database: the configured one, or an embedded one that runs as long as this process.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { migrate, missingMigrations } from '../../../prisma/migrate.ts'
import { type Config, ConfigError } from '../../config.ts'
import { startEmbeddedPostgres } from '../../embedded-postgres/index.ts'
import { DirectoryInUse } from '../../embedded-postgres/processes.ts'
import { findRunningPostgres } from '../../embedded-postgres/running.ts'
import { closeDatabase, type Database, openDatabase } from '../../platform/database/database.ts'
import { openReadiness, type Readiness } from '../../platform/observe/readiness.ts'
import { createDataDirectory } from './first-start.ts'
import { describeMissing } from './schema.ts'

export type Postgres = {
  url: string
  /** Whether another process runs and migrates it. */
  shared: boolean
  /** Resolves with a sentence if the embedded database exits unexpectedly. */
  broken: Promise<string>
  close(): Promise<void>
}

export type Pools = {
  /** For requests. */
  db: Database
  /** For jobs and everything else that no caller waits for. */
  workerDb: Database
  readiness: Readiness
  close(): Promise<void>
}

// How long a command waits for a starting server, and how often it checks.
const startTimeoutMs = 30_000
const pollMs = 100

/** The file that marks an incomplete restore; nothing starts on such a directory. */
export const restoreMark = (dataDir: string) => resolve(dataDir, 'restore-incomplete')

export function refuseHalfRestored(dataDir: string): void {
  if (!existsSync(restoreMark(dataDir))) return
  throw new ConfigError(`${dataDir} is incomplete because a restore did not finish. Empty it and restore again.`)
}

/** A command may use the embedded database of a running server (`beside`); a server wants its own. */
export async function openPostgres(config: Config, { beside }: { beside: boolean }): Promise<Postgres> {
  const broken = new Promise<string>(() => {})
  if (config.databaseUrl) return { url: config.databaseUrl, shared: false, broken, close: async () => {} }
  const directory = join(config.dataDir, 'postgres')
  const deadlineMs = Date.now() + startTimeoutMs
  for (;;) {
    const running = beside ? await findRunningPostgres(directory) : null
    if (running) return { url: running, shared: true, broken, close: async () => {} }
    try {
      const embedded = await startEmbeddedPostgres({ directory })
      return { url: embedded.url('postgres'), shared: false, broken: embedded.exited, close: () => embedded.stop() }
    } catch (error) {
      // The server that the command needs is starting or stopping at this moment.
      if (!beside || !(error instanceof DirectoryInUse) || Date.now() > deadlineMs) throw error
    }
    await delay(pollMs)
  }
}

/** Creates the data directory if it is missing, and opens the database that goes with it. */
export async function openDataDirectory(config: Config, options: { beside: boolean }): Promise<Postgres> {
  refuseHalfRestored(config.dataDir)
  await createDataDirectory(config.dataDir)
  return openPostgres(config, options)
}

/** Opens no connection before the first query. */
export function openPools(config: Config, url: string): Pools {
  const db = openDatabase(url, config.databasePool, { limits: { lockMs: config.databaseLockTimeoutMs } })
  const workerDb = openDatabase(url, config.databaseWorkerPool, { class: 'workers' })
  const readiness = openReadiness(url)
  return {
    db,
    workerDb,
    readiness,
    async close() {
      await Promise.all([closeDatabase(db), closeDatabase(workerDb), readiness.close()])
    },
  }
}

/** For commands, even while a server runs or starts. It doesn't wait for a missing schema, but says what to do. */
export async function openStorage(config: Config): Promise<Pools> {
  const postgres = await openDataDirectory(config, { beside: true })
  try {
    if (postgres.shared) await awaitSchema(postgres.url)
    else await prepareSchema(config, postgres.url)
  } catch (error) {
    await postgres.close()
    throw error
  }
  const pools = openPools(config, postgres.url)
  return {
    ...pools,
    async close() {
      await pools.close()
      await postgres.close()
    },
  }
}

/** Waits for the migrations of a starting server. */
async function awaitSchema(url: string): Promise<void> {
  const deadlineMs = Date.now() + startTimeoutMs
  for (;;) {
    const missing = await missingMigrations(url)
    if (missing.length === 0) return
    if (Date.now() > deadlineMs) throw new ConfigError(describeMissing(missing))
    await delay(pollMs)
  }
}

async function prepareSchema({ databaseUrl, migrate: configured, production }: Config, url: string): Promise<void> {
  if (databaseUrl === null || (configured ?? !production)) return void (await migrate(url))
  const missing = await missingMigrations(url)
  if (missing.length > 0) throw new ConfigError(describeMissing(missing))
}
