// The status job: posts a deployment's state to the repository host, now or when its rate limit allows.
import { enqueue } from '../../jobs/queue.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import { createReach, type ReachOptions } from '../../platform/http/checked-lookup.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { type DueStatus, findDueStatus, recordStatus } from '../../services/deployments/index.ts'
import type { TargetRules } from '../../services/webhooks/index.ts'
import { type HostAnswer, postJson, RefusedTarget } from './request.ts'
import { bodyOf, hasNewerStatus, statusHeaders, statusUrl } from './status.ts'

export type StatusDeps = { db: Database; config: TargetRules & ReachOptions; urls: Urls; vault: Vault }

// The first three delays cover a restart of the host, the last two a longer outage.
const retryDelaysMs = [2_000, 10_000, 60_000, 600_000, 3_600_000] as const
const maxWaitMs = 3_600_000
// Older statuses aren't useful and are dropped.
const maxAgeMs = 24 * 3_600_000

/** How long to wait after a rate-limited request; null if the host doesn't say. */
export function retryDelayOf({ status, headers }: HostAnswer, now: number): number | null {
  const after = headers['retry-after']
  if (after !== undefined && (status === 403 || status === 429 || status >= 500)) {
    const waitMs = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - now
    if (Number.isFinite(waitMs)) return Math.min(Math.max(waitMs, 1_000), maxWaitMs)
  }
  // GitHub responds with 403 or 429 and the Unix time of the reset.
  const reset = Number(headers['x-ratelimit-reset'])
  if ((status === 403 || status === 429) && headers['x-ratelimit-remaining'] === '0' && Number.isFinite(reset)) {
    return Math.min(Math.max(reset * 1000 - now, 1_000), maxWaitMs)
  }
  return null
}

/** For the project's owner: the status and the host's error message on one line. */
function failureText({ status, text }: HostAnswer): string {
  const message = /"message"\s*:\s*"((?:[^"\\]|\\.){1,200})"/.exec(text)?.[1]
  const word = message?.replace(/\\.|\p{Cc}/gu, ' ').trim()
  return `The repository host answered ${status}${word ? `: ${word}` : ''}`
}

export function createStatusHandler({ db, config: rules, urls, vault }: StatusDeps): Handler<'status'> {
  const reach = createReach(rules)

  /** Returns null if done, or how long to wait before a retry. */
  async function post(due: DueStatus, signal: AbortSignal): Promise<number | null> {
    const headers = statusHeaders(due.provider, vault.open(due.token, placeOf.statusToken(due.projectId)).toString())
    let answer: HostAnswer
    try {
      answer = await postJson(statusUrl(due), { headers, body: bodyOf(urls, due), rules, reach, signal })
    } catch (error) {
      if (!(error instanceof RefusedTarget)) throw error
      await recordStatus(db, due, `Not sent: ${error.message}`)
      return null
    }
    const { status } = answer
    if ((status >= 200 && status < 300) || hasNewerStatus(due.provider, status, answer.text)) {
      await recordStatus(db, due, null)
      return null
    }
    const waitMs = retryDelayOf(answer, Date.now())
    // A wrong token, an invisible repository or a missing commit is permanent: reported to the owner instead of retried.
    const final = waitMs === null && status >= 300 && status < 500 && status !== 408 && status !== 429
    if (!final && waitMs === null) throw new Error(failureText(answer))
    await recordStatus(db, due, failureText(answer))
    return waitMs
  }

  return {
    concurrency: 8,
    retryDelaysMs,
    async run({ deploymentId }, { signal }) {
      // Posts the current state, so neither the order nor the number of jobs matters.
      const due = await findDueStatus(db, deploymentId)
      // Without a commit there is nothing to post to. The job is queued again when the commit is known.
      if (!due || due.commit === '' || due.outdated) return
      if (Date.now() - (due.finishedAt ?? due.createdAt).getTime() > maxAgeMs) return
      const waitMs = await post(due, signal)
      // Queues the same job again.
      if (waitMs !== null) {
        await enqueue(db, {
          kind: 'status',
          key: deploymentId,
          payload: { deploymentId },
          runAt: new Date(Date.now() + waitMs),
        })
      }
    },
    async giveUp({ deploymentId }, error) {
      const due = await findDueStatus(db, deploymentId)
      if (due) await recordStatus(db, due, error.message.slice(0, 500))
    },
  }
}
