// The database: the configured one, or an embedded one that runs as long as this process.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { migrate } from '../../prisma/migrate.ts'
import { type Config, ConfigError } from '../config.ts'
import { startEmbeddedPostgres } from '../embedded-postgres/index.ts'
import { findRunningPostgres } from '../embedded-postgres/running.ts'
import { closeDatabase, type Database, openDatabase } from '../platform/database.ts'
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
}

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

export async function openStorage(config: Config, options = { beside: false }): Promise<Storage> {
  refuseHalfRestored(config.dataDir)
  await makeDataDirectory(config.dataDir)
  const postgres = await openPostgres(config, options)
  try {
    if (!postgres.shared) await migrate(postgres.url)
  } catch (error) {
    await postgres.close()
    throw error
  }
  const db = openDatabase(postgres.url, config.databasePool, { lockMs: config.databaseLockTimeoutMs })
  const workerDb = openDatabase(postgres.url, config.databaseWorkerPool, { class: 'workers' })
  const readiness = openReadiness(postgres.url)
  return {
    ...postgres,
    db,
    workerDb,
    readiness,
    async close() {
      await Promise.all([closeDatabase(db), closeDatabase(workerDb), readiness.close()])
      await postgres.close()
    },
  }
}
