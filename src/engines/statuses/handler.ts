// The status job: reads how a deployment stands and tells the repository host, now or when it will listen again.
import type { Config } from '../../config.ts'
import type { Database } from '../../db.ts'
import { enqueue } from '../../jobs/queue.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Vault } from '../../secrets.ts'
import { type DueStatus, findDueStatus, recordStatus } from '../../services/commit-statuses.ts'
import { type HostAnswer, postJson, RefusedTarget } from './request.ts'
import { statusHeaders, statusOf, statusUrl } from './status.ts'

export type StatusDeps = { db: Database; config: Config; vault: Vault }

// A host that is restarted is back within the first three; one that is down for longer, within the last two.
const retryDelaysMs = [2_000, 10_000, 60_000, 600_000, 3_600_000] as const
const maxWaitMs = 3_600_000
// Nobody waits for the status of a commit any more, however long the host asks for patience.
const worthTellingMs = 24 * 3_600_000

/** When a host that was asked too often wants to be asked again; null where it does not say. */
export function waitOf({ status, headers }: HostAnswer, now: number): number | null {
  const after = headers['retry-after']
  if (after !== undefined && (status === 403 || status === 429 || status >= 500)) {
    const waitMs = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - now
    if (Number.isFinite(waitMs)) return Math.min(Math.max(waitMs, 1_000), maxWaitMs)
  }
  // GitHub answers 403 or 429 and tells the second at which its hour is over.
  const reset = Number(headers['x-ratelimit-reset'])
  if ((status === 403 || status === 429) && headers['x-ratelimit-remaining'] === '0' && Number.isFinite(reset)) {
    return Math.min(Math.max(reset * 1000 - now, 1_000), maxWaitMs)
  }
  return null
}

/** The host's own word for it where it has one, on one line: it is shown to the project's owner. */
function complaintOf({ status, text }: HostAnswer): string {
  const said = /"message"\s*:\s*"((?:[^"\\]|\\.){1,200})"/.exec(text)?.[1]
  const word = said?.replace(/\\.|\p{Cc}/gu, ' ').trim()
  return `The repository host answered ${status}${word ? `: ${word}` : ''}`
}

export function createStatusHandler({ db, config, vault }: StatusDeps): Handler<'status'> {
  /** Null: nothing more to do. A number: try again after these milliseconds. */
  async function tell(due: DueStatus, signal: AbortSignal): Promise<number | null> {
    const headers = statusHeaders(due.provider, vault.open(due.token).toString())
    let answer: HostAnswer
    try {
      answer = await postJson(statusUrl(due), headers, statusOf(config, due), config, signal)
    } catch (error) {
      if (!(error instanceof RefusedTarget)) throw error
      await recordStatus(db, due, `Not sent: ${error.message}`)
      return null
    }
    const { status } = answer
    if (status >= 200 && status < 300) {
      await recordStatus(db, due, null)
      return null
    }
    const waitMs = waitOf(answer, Date.now())
    // A token that is wrong, a repository it cannot see and a commit that is not there stay so: told once, to the owner.
    const final = waitMs === null && status >= 300 && status < 500 && status !== 408 && status !== 429
    if (!final && waitMs === null) throw new Error(complaintOf(answer))
    await recordStatus(db, due, complaintOf(answer))
    return waitMs
  }

  return {
    concurrency: 8,
    retryDelaysMs,
    async run({ deploymentId }, { signal }) {
      // What is told is what is true now, so neither the order of jobs nor their number matters.
      const due = await findDueStatus(db, deploymentId)
      // Without a commit there is nothing to tell it of; the job comes again when the commit is known.
      if (!due || due.commit === '' || due.outdated) return
      if (Date.now() - (due.finishedAt ?? due.createdAt).getTime() > worthTellingMs) return
      const waitMs = await tell(due, signal)
      // Asks for this very job again, which runs at that time once it has ended.
      if (waitMs !== null) {
        await enqueue(db, 'status', deploymentId, { deploymentId }, new Date(Date.now() + waitMs))
      }
    },
    async giveUp({ deploymentId }, error) {
      const due = await findDueStatus(db, deploymentId)
      if (due) await recordStatus(db, due, error.message.slice(0, 500))
    },
  }
}
