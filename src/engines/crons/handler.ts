// The cron job: calls production once and records the result.
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { endRun, type RunResult, type StartedRun, startRun } from '../../services/crons/index.ts'
import { CallFailed, callProduction } from './call.ts'
import { type EdgeEndpoints, edgeEndpoints } from './edge-endpoints.ts'

export type CronDeps = { db: Database; config: Config; urls: Urls; vault: Vault; log: Logger }

const defaultTimeoutMs = 60_000
// Per worker. Each account gets two at once, as for every kind of job.
const concurrency = 20
// Only database errors are retried. A run that has begun isn't repeated.
const retryDelaysMs = [1_000, 10_000, 60_000] as const

/** Characters that are safe in a header value. */
const headerText = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/

type Call = { endpoints: EdgeEndpoints; urls: Urls; timeoutMs: number; signal: AbortSignal }

async function call(run: StartedRun, { endpoints, urls, timeoutMs, signal }: Call): Promise<RunResult> {
  const { path, label, secret } = run
  const failed = (error: string, status: number | null = null) => ({ outcome: 'failed' as const, status, error })
  const startMs = performance.now()
  const settle = (result: Omit<RunResult, 'durationMs'>) => ({
    ...result,
    durationMs: Math.round(performance.now() - startMs),
  })
  if (secret !== null && !headerText.test(secret)) {
    return settle(failed('CRON_SECRET contains characters that are not allowed in a header.'))
  }
  const headers = {
    host: new URL(urls.deployment(label)).host,
    'user-agent': 'berth-cron/1',
    accept: '*/*',
    ...(secret !== null && { authorization: `Bearer ${secret}` }),
  }
  const deadline = AbortSignal.timeout(timeoutMs)
  try {
    const { status, ended } = await callProduction(endpoints, { path, headers }, AbortSignal.any([signal, deadline]))
    if (!ended && deadline.aborted) return settle(failed(`The answer had no end within ${timeoutMs / 1000} s.`, status))
    if (!ended) return settle(failed('The answer was cut off.', status))
    if (status >= 300 && status < 400) return settle(failed('Redirects are not followed.', status))
    if (status < 200 || status >= 400) return settle(failed(`Production answered with ${status}.`, status))
    return settle({ outcome: 'ok', status, error: null })
  } catch (error) {
    if (signal.aborted) return settle(failed('The worker stopped before the response arrived.'))
    if (deadline.aborted) return settle(failed(`There was no answer within ${timeoutMs / 1000} s.`))
    if (!(error instanceof CallFailed)) throw error
    return settle(failed(error.message))
  }
}

export function createCronHandler(
  { db, config, urls, vault, log }: CronDeps,
  timeoutMs = defaultTimeoutMs,
): Handler<'cron'> {
  const readEndpoints = edgeEndpoints(config)
  return {
    concurrency,
    retryDelaysMs,
    async run({ cronId }, { signal }) {
      const begun = await startRun(db, { urls, vault }, cronId)
      if (!begun) return
      const result = await call(begun, { endpoints: await readEndpoints(db), urls, timeoutMs, signal })
      await endRun(db, begun, result)
      if (result.outcome === 'failed') log.info({ cronId, runId: begun.id, error: result.error }, 'a cron failed')
    },
    // Housekeeping queues it again.
    async giveUp() {},
  }
}
