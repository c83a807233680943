// The database: the configured one, or an embedded one that runs as long as this process.
import { join } from 'node:path'
import { migrate } from '../../prisma/migrate.ts'
import type { Config } from '../config.ts'
import { startEmbeddedPostgres } from '../embedded-postgres/index.ts'
import { closeDatabase, type Database, openDatabase } from '../platform/database.ts'
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
  close(): Promise<void>
}

export async function openStorage(config: Config): Promise<Storage> {
  await makeDataDirectory(config.dataDir)
  const embedded = config.databaseUrl
    ? null
    : await startEmbeddedPostgres({ directory: join(config.dataDir, 'postgres') })
  const url = config.databaseUrl ?? embedded!.url('postgres')
  try {
    await migrate(url)
  } catch (error) {
    await embedded?.stop()
    throw error
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
    async close() {
      await Promise.all([closeDatabase(db), closeDatabase(workerDb), readiness.close()])
      await embedded?.stop()
    },
  }
}
