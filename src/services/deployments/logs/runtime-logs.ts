// Output of the servers of deployments: lines of the step `run`, kept for a day.
import type { Static } from '@sinclair/typebox'
import { deleteInBatches } from '../../../platform/batches.ts'
import type { Db } from '../../../platform/database/database.ts'
import type { RuntimeLogLine, RuntimeLogQuery } from '../../../schemas/runtime-logs.ts'
import { forgetOldRunLines, forgetSurplusRunLines, readRunLines } from './runtime-log-statements.ts'

const keptMs = 24 * 60 * 60_000
const maxLines = 10_000

type Filter = Pick<Static<typeof RuntimeLogQuery>, 'instance' | 'stream'> & { since?: Date | undefined }

/** Lines after a number, oldest first. The caller must have checked the owner. */
export async function runtimeLinesAfter(
  db: Db,
  deploymentId: string,
  { since, instance, stream }: Filter,
  { seq, limit }: { seq: number; limit: number },
): Promise<Static<typeof RuntimeLogLine>[]> {
  const filter = { since: since ?? null, instance: instance ?? null, stream: stream ?? null }
  const found = await readRunLines(db, { deploymentId, seq, limit, ...filter })
  return found.map(({ seq, at, instance, stream, text }) => ({
    seq,
    at: at.toISOString(),
    instance,
    stream: stream as Static<typeof RuntimeLogLine>['stream'],
    text,
  }))
}

/** Deletes lines older than a day, and beyond the newest ten thousand of each deployment. */
export async function deleteOldRuntimeLines(db: Db, signal?: AbortSignal): Promise<number> {
  const before = new Date(Date.now() - keptMs)
  const first = (rows: { count: number }[]) => rows[0]!
  const old = await deleteInBatches(signal, async (limit) => first(await forgetOldRunLines(db, { before, limit })))
  const remove = async (limit: number) => first(await forgetSurplusRunLines(db, { most: maxLines, limit }))
  return old + (await deleteInBatches(signal, remove, 10_000))
}
