// Another API server on the same database that shares its limits, like another process or machine.
import { type App, buildApp } from '../../src/api/app.ts'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { listen } from '../../src/platform/database/notifications.ts'
import { openLimits, type SharedLimits } from '../../src/services/limits/limits.ts'
import { createTokenDirectory } from '../../src/services/tokens/directory.ts'
import type { TestApi } from './api.ts'

export type Replica = {
  app: App
  /** How often it requested a slice of a limit. */
  asked: number
  limits: SharedLimits
  /** Shuts down in order. */
  stop(): Promise<void>
}

/** `takeTimeoutMs`: long enough for a busy machine, unless the database is meant not to answer. */
export async function startReplica({ deps, config, databaseUrl }: TestApi, takeTimeoutMs = 30_000): Promise<Replica> {
  const { log } = deps
  const db: Database = openDatabase(databaseUrl, 8, { class: 'workers' })
  const notifications = await listen(databaseUrl, log)
  const tokenDirectory = createTokenDirectory(db, notifications)
  const limits = await openLimits({ db, notifications, log }, { takeTimeoutMs })
  const counted: SharedLimits = Object.create(limits, {
    take: {
      value: (...args: Parameters<SharedLimits['take']>) => {
        replica.asked++
        return limits.take(...args)
      },
    },
  })
  const app = await buildApp({ ...deps, config, db, notifications, tokenDirectory, sharedLimits: counted })
  await app.ready()
  const replica: Replica = {
    app,
    asked: 0,
    limits,
    async stop() {
      await app.close()
      await limits.close()
      await tokenDirectory.close()
      await notifications.close()
      await closeDatabase(db)
    },
  }
  return replica
}
