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
import { makeDataDirectory } from './first-start.ts'
import { lacks } from './schema.ts'

export type Postgres = {
  url: string
  /** Whether another process runs it, and migrates it. */
  shared: boolean
  /** Resolves with a sentence if the embedded database ends unexpectedly. */
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

// How long a command waits for a server that starts, and how often it looks.
const settlingMs = 30_000
const lookMs = 100

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
  const deadlineMs = Date.now() + settlingMs
  for (;;) {
    const running = beside ? await findRunningPostgres(directory) : null
    if (running) return { url: running, shared: true, broken, close: async () => {} }
    try {
      const embedded = await startEmbeddedPostgres({ directory })
      return { url: embedded.url('postgres'), shared: false, broken: embedded.exited, close: () => embedded.stop() }
    } catch (error) {
      // The server beside which the command is to work is starting, or stopping, at this moment.
      if (!beside || !(error instanceof DirectoryInUse) || Date.now() > deadlineMs) throw error
    }
    await delay(lookMs)
  }
}

/** The data directory, made where it is missing, and the database that goes with it. */
export async function openPlace(config: Config, options: { beside: boolean }): Promise<Postgres> {
  refuseHalfRestored(config.dataDir)
  await makeDataDirectory(config.dataDir)
  return openPostgres(config, options)
}

/** Opens no connection before it is used. */
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

/** For a command, also beside a server that runs or starts. It waits for no other schema: who gave it is told what to do. */
export async function openStorage(config: Config): Promise<Pools> {
  const postgres = await openPlace(config, { beside: true })
  try {
    if (postgres.shared) await schemaOfServer(postgres.url)
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

/** Waits for the migrations of a server that is starting. */
async function schemaOfServer(url: string): Promise<void> {
  const deadlineMs = Date.now() + settlingMs
  for (;;) {
    const missing = await missingMigrations(url)
    if (missing.length === 0) return
    if (Date.now() > deadlineMs) throw new ConfigError(lacks(missing))
    await delay(lookMs)
  }
}

async function prepareSchema({ databaseUrl, migrate: given, production }: Config, url: string): Promise<void> {
  if (databaseUrl === null || (given ?? !production)) return void (await migrate(url))
  const missing = await missingMigrations(url)
  if (missing.length > 0) throw new ConfigError(lacks(missing))
}
