// Writes what became of attempts: those that end while a batch is being written make the next one.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../db.ts'
import { isGone, type Result, recordResults, recordStanding, succeeded } from '../../services/delivery-results.ts'
import { disableWebhook } from '../../services/webhooks.ts'

export type Recorder = {
  /** `failures` is how many the webhook had in a row when the attempt began. */
  add(result: Result, failures: number): void
  /** Whether an outcome of this webhook is not written yet. */
  isWaiting(webhookId: string): boolean
  /** Waits until everything is written, but not for a database that does not come back in time. */
  close(withinMs: number): Promise<void>
}

// Nothing but failure for this long, and the receiver is taken to be gone.
const disableAfterMs = 5 * 86_400_000
const batchSize = 200
const gatherMs = 25
const retryMs = 500

/** `onStanding` is told of webhooks whose failures were counted, or whose receiver is well again. */
export function createRecorder(db: Database, log: Logger, onStanding: (webhookIds: string[]) => void): Recorder {
  const waiting: { result: Result; failures: number }[] = []
  let writing: Promise<void> | null = null
  let givenUp = false

  async function write(): Promise<void> {
    // What ends within a moment is written together.
    await sleep(gatherMs)
    while (waiting.length > 0 && !givenUp) {
      const batch = waiting.slice(0, batchSize)
      try {
        await writeBatch(batch)
        waiting.splice(0, batch.length)
      } catch (err) {
        // Written again as it is: the same attempt is one row, however often it comes.
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
    // A receiver that does well and did before has nothing to be noted.
    const notable = new Set(
      batch.filter(({ result, failures }) => failures > 0 || !succeeded(result)).map(({ result }) => result.webhookId),
    )
    if (notable.size === 0) return
    const results = batch.map(({ result }) => result).filter(({ webhookId }) => notable.has(webhookId))
    const standings = await recordStanding(db, results)
    onStanding([...notable])
    const gone = new Set(results.filter(isGone).map(({ webhookId }) => webhookId))
    for (const { webhookId, failingSince } of standings) {
      if (failingSince && failingSince.getTime() < Date.now() - disableAfterMs) gone.add(webhookId)
    }
    for (const webhookId of gone) {
      if (await disableWebhook(db, webhookId)) log.info({ webhookId }, 'a webhook was disabled: its receiver is gone')
    }
  }

  return {
    add(result, failures) {
      waiting.push({ result, failures })
      writing ??= write().finally(() => {
        writing = null
      })
    },
    isWaiting: (webhookId) => waiting.some(({ result }) => result.webhookId === webhookId),
    async close(withinMs) {
      const timer = setTimeout(() => {
        givenUp = true
      }, withinMs)
      while (writing) await writing
      clearTimeout(timer)
    },
  }
}
