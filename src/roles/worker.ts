// The worker role: the handlers of all jobs, the worker that runs them, and periodic maintenance.
import { announceWaits, buildHandlers } from '../engines/builder/index.ts'
import { createIssuer } from '../engines/certificates/index.ts'
import { startDeliveries } from '../engines/delivery/index.ts'
import { createStatusHandler } from '../engines/statuses/index.ts'
import { createVerification } from '../engines/verification/index.ts'
import { type Handlers, startWorker } from '../jobs/worker.ts'
import { requeueForgottenChecks } from '../services/domains/checks.ts'
import type { Closing } from './closing.ts'
import type { Hosting } from './hosting.ts'
import { observePlatform } from './metrics.ts'
import type { Shared } from './shared.ts'

const sweepMs = 10 * 60_000

export async function openWorker(deps: Shared & Hosting, closing: Closing): Promise<void> {
  const { db, notifications, log } = deps
  observePlatform(deps)
  const issuer = await createIssuer(deps)
  // Required, so that a kind of job without its handler does not compile.
  const handlers: Required<Handlers> = {
    ...buildHandlers(deps),
    ...createVerification(deps),
    issue: issuer.issue,
    status: createStatusHandler(deps),
  }
  closing.add(() => issuer.close())
  const worker = startWorker(db, notifications, log, handlers)
  const deliveries = startDeliveries(deps)
  closing.add(announceWaits(deps))
  const sweep = () =>
    requeueForgottenChecks(db).then(
      (queued) => queued > 0 && log.warn({ queued }, 'domains had no job for their next check'),
      (err) => log.warn({ err }, 'the sweep for forgotten checks'),
    )
  const timer = setInterval(sweep, sweepMs)
  closing.add(async () => {
    clearInterval(timer)
    await Promise.all([worker.stop(), deliveries.stop()])
  })
  await Promise.all([issuer.start(), sweep()])
}
