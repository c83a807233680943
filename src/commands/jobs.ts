// `berth jobs list|retry|discard`: failed jobs.
import type { Config } from '../config.ts'
import type { Database } from '../platform/database/database.ts'
import { Fault } from '../platform/errors.ts'
import { createUrls } from '../platform/http/urls.ts'
import { openStorage } from '../roles/opening/storage.ts'
import { discardFailedJob, type FailedJob, listFailedJobs, retryFailedJob } from '../services/jobs/index.ts'
import { table } from './table.ts'
import { UsageError } from './usage-error.ts'

/** `ids`: ids that `list` shows, or `all`. */
export async function jobs(config: Config, verb: string, ids: string[], json: boolean): Promise<void> {
  const changes = {
    retry: (db: Database, id: string) => retryFailedJob(db, createUrls(config), id),
    discard: (db: Database, id: string) => discardFailedJob(db, { id }),
  }
  const change = changes[verb as keyof typeof changes]
  if (verb !== 'list' && (!change || ids.length === 0))
    throw new UsageError('Use berth jobs list, retry <id…|all> or discard <id…|all>.')
  const invalid = ids.find((id) => id !== 'all' && !/^\d{1,18}$/.test(id))
  if (invalid !== undefined) throw new UsageError(`${invalid} is not a job id; \`berth jobs list\` shows them.`)
  const storage = await openStorage(config)
  try {
    if (!change) {
      const failed = await listFailedJobs(storage.db)
      return console.log(json ? JSON.stringify(failed, null, 2) : describe(failed))
    }
    const selected = ids.includes('all') ? (await listFailedJobs(storage.db)).map(({ id }) => id) : ids
    await changeEach(storage.db, selected, verb === 'retry' ? 'queued again' : 'deleted', change)
  } finally {
    await storage.close()
  }
}

async function changeEach(
  db: Database,
  ids: string[],
  done: string,
  change: (db: Database, id: string) => Promise<unknown>,
): Promise<void> {
  const refused: string[] = []
  for (const id of ids) {
    try {
      await change(db, id)
      console.log(`Job ${id} is ${done}.`)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      refused.push(error.message)
    }
  }
  if (refused.length > 0) throw new UsageError(refused.join('\n'))
}

function describe(failed: FailedJob[]): string {
  if (failed.length === 0) return 'No job has failed.'
  const rows = failed.map(({ id, kind, key, attempts, lastError, failedAt }) => [
    id,
    kind,
    key ?? '–',
    String(attempts),
    failedAt ?? '–',
    // One line each, whatever the error contains.
    (lastError ?? '–').replace(/\s+/g, ' ').slice(0, 200),
  ])
  return table(['ID', 'KIND', 'KEY', 'ATTEMPTS', 'FAILED', 'LAST ERROR'], rows)
}
