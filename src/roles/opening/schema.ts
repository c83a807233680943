// The database schema: applied by this process, or awaited if `berth migrate` is a separate step.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { migrate, missingMigrations } from '../../../prisma/migrate.ts'
import { isDatabaseLost } from '../../platform/database/database.ts'

export type Schema = {
  /** For health: null, or what is missing. */
  readiness(): string | null
  /** Resolves when the schema is complete. Rejects if the database is unavailable or can't be migrated. */
  prepare(): Promise<void>
  /**
   * Resolves when the database is back and has the schema. Never rejects, because roles continue to serve meanwhile.
   */
  prepareLater(): Promise<void>
}

export type SchemaOptions = { migrates: boolean; log: Logger; signal: AbortSignal }

const retryMs = 1_000

export function createSchema(url: string, { migrates, log, signal }: SchemaOptions): Schema {
  let missing: string[] = []

  async function attempt(): Promise<boolean> {
    if (migrates) await apply()
    else missing = await missingMigrations(url)
    return missing.length === 0
  }

  async function apply(): Promise<void> {
    const startedMs = performance.now()
    const { length } = await migrate(url)
    if (length === 0) return
    const durationMs = Math.round(performance.now() - startedMs)
    log.info({ migrations: length, durationMs }, `applied ${count(length)} to the database`)
  }

  async function prepareLater(): Promise<void> {
    let logged = missing.join()
    for (;;) {
      try {
        await delay(retryMs, undefined, { signal, ref: false })
      } catch {
        return new Promise(() => {})
      }
      try {
        if (await attempt()) return
        if (missing.join() !== logged) log.warn({ missing }, describeMissing(missing))
        logged = missing.join()
      } catch (err) {
        const { message } = err as Error
        if (!isDatabaseLost(err) && message !== logged)
          log.error({ err }, 'the database is back but cannot be migrated')
        logged = message
      }
    }
  }

  return {
    readiness: () => (missing.length > 0 ? describeMissing(missing) : null),
    async prepare() {
      if (await attempt()) return
      log.warn({ missing }, describeMissing(missing))
      await prepareLater()
      log.info('the database schema is complete')
    },
    prepareLater,
  }
}

/** What to do about missing migrations, in one sentence. */
export function describeMissing(missing: readonly string[]): string {
  return `The schema of the database is older than this version, by ${count(missing.length)} from ${missing[0]} on: run \`berth migrate\`.`
}

const count = (migrations: number) => (migrations === 1 ? '1 migration' : `${migrations} migrations`)
