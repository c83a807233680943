// Records the outcomes of attempts in batches. Those that end during a write form the next batch.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../platform/database/database.ts'
import {
  countFailures,
  disableWebhook,
  isGone,
  type Result,
  recordResults,
  succeeded,
} from '../../services/webhooks/index.ts'

export type Recorder = {
  /** `failures` is the webhook's number of consecutive failures when the attempt started. */
  add(result: Result, failures: number): void
  /** Whether an outcome of this webhook hasn't been written yet. */
  isWaiting(webhookId: string): boolean
  /** Waits until everything is written, or until the timeout. */
  close(withinMs: number): Promise<void>
}

const batchSize = 200
const gatherMs = 25
const retryMs = 500

/** `onCounted` gets the webhooks whose failures or recoveries were recorded. */
export function createRecorder(db: Database, log: Logger, onCounted: (webhookIds: string[]) => void): Recorder {
  const queue: { result: Result; failures: number }[] = []
  let writing: Promise<void> | null = null
  let isGivenUp = false

  async function write(): Promise<void> {
    // Gathers outcomes into one batch.
    await sleep(gatherMs)
    while (queue.length > 0 && !isGivenUp) {
      const batch = queue.slice(0, batchSize)
      try {
        await writeBatch(batch)
        queue.splice(0, batch.length)
      } catch (err) {
        // Retried unchanged, because the write is idempotent per attempt.
        log.warn({ err, results: batch.length }, 'the outcome of deliveries could not be recorded yet')
        await sleep(retryMs)
      }
    }
  }

  async function writeBatch(batch: { result: Result; failures: number }[]): Promise<void> {
    await recordResults(
      db,
      batch.map(({ result }) => result),
    )
    // A success after a success doesn't change the webhook.
    const notable = new Set(
      batch.filter(({ result, failures }) => failures > 0 || !succeeded(result)).map(({ result }) => result.webhookId),
    )
    if (notable.size === 0) return
    const results = batch.map(({ result }) => result).filter(({ webhookId }) => notable.has(webhookId))
    const counted = await countFailures(db, results)
    onCounted([...notable])
    const gone = new Set(results.filter(isGone).map(({ webhookId }) => webhookId))
    for (const { webhookId, lasting } of counted) if (lasting) gone.add(webhookId)
    for (const webhookId of gone) {
      if (await disableWebhook(db, webhookId)) log.info({ webhookId }, 'a webhook was disabled: its receiver is gone')
    }
  }

  return {
    add(result, failures) {
      queue.push({ result, failures })
      writing ??= write().finally(() => {
        writing = null
      })
    },
    isWaiting: (webhookId) => queue.some(({ result }) => result.webhookId === webhookId),
    async close(withinMs) {
      const timer = setTimeout(() => {
        isGivenUp = true
      }, withinMs)
      while (writing) await writing
      clearTimeout(timer)
    },
  }
}
