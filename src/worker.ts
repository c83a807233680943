// The worker role: the engines behind every kind of job, one worker that runs them, and what must be looked after.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Artifacts } from './artifacts.ts'
import type { Config } from './config.ts'
import type { Database } from './db.ts'
import type { ServerProofs } from './engines/builder/proof.ts'
import { buildHandlers } from './engines/builder/start.ts'
import { createIssuer } from './engines/certificates/issuer.ts'
import { startDeliveries } from './engines/delivery/start.ts'
import { createStatusHandler } from './engines/statuses/handler.ts'
import { createVerification } from './engines/verification/verification.ts'
import { type Handlers, startWorker } from './jobs/worker.ts'
import type { Notifications } from './notifications.ts'
import type { Repositories } from './repositories.ts'
import type { Sandbox } from './sandbox/sandbox.ts'
import type { Vault } from './secrets.ts'
import { requeueForgottenChecks } from './services/domain-checks.ts'

export type WorkerDeps = {
  config: Config
  db: Database
  notifications: Notifications
  vault: Vault
  repositories: Repositories
  artifacts: Artifacts
  sandbox: Sandbox
  /** Its address. */
  packageRegistry: Promise<string>
  /** Those of the edge where it is in this process. */
  servers: ServerProofs
  log: Logger
  registry: Registry
}

const sweepMs = 10 * 60_000

export async function startWorkerRole(deps: WorkerDeps): Promise<{ stop(): Promise<void> }> {
  const { db, notifications, log } = deps
  const issuer = await createIssuer(deps)
  // Required, so that a kind of job without its handler does not compile.
  const handlers: Required<Handlers> = {
    ...buildHandlers(deps),
    ...createVerification(deps),
    issue: issuer.issue,
    status: createStatusHandler(deps),
  }
  const worker = startWorker(db, notifications, log, handlers)
  const deliveries = startDeliveries(deps)
  const sweep = () =>
    requeueForgottenChecks(db).then(
      (queued) => queued > 0 && log.warn({ queued }, 'domains had no job for their next check'),
      (err) => log.warn({ err }, 'the sweep for forgotten checks'),
    )
  const timer = setInterval(sweep, sweepMs)
  await Promise.all([issuer.start(), sweep()])
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all([worker.stop(), deliveries.stop()])
      await issuer.close()
    },
  }
}
