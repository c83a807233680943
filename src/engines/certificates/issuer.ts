// Obtains and renews certificates: the issue job, and hourly upkeep that queues missing ones.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import { enqueue } from '../../jobs/queue.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import {
  deleteOldOrders,
  deleteUnusedCertificates,
  platformJob,
  queueMissingJobs,
  queueOutdatedIssues,
  queuePlatformJobs,
  refusesWildcard,
} from '../../services/certificates/index.ts'
import { createAcmeAuthority } from './acme-authority.ts'
import { createDevelopmentCa } from './development-ca.ts'
import { type RetryTable, retryTable } from './failures.ts'
import { createIssueHandler } from './issue.ts'
import { createIssuerMetrics } from './metrics.ts'
import { type ChallengeServers, challengeServersOf } from './presence.ts'

export type IssuerOptions = {
  config: Config
  db: Database
  vault: Vault
  notifications: Notifications
  log: Logger
  /** Default: its own registry. */
  registry?: Registry
  /** Default: the engine's table. */
  retry?: RetryTable
  /** The servers that should show a challenge before the authority validates it. Default: from the configuration. */
  challengeServers?: ChallengeServers
}

export type Issuer = {
  issue: Handler<'issue'>
  /** Runs the upkeep now and every hour. */
  start(): Promise<void>
  close(): Promise<void>
}

const upkeepIntervalMs = 3_600_000

export async function createIssuer(options: IssuerOptions): Promise<Issuer> {
  const {
    config,
    db,
    vault,
    notifications,
    log,
    retry = retryTable,
    challengeServers = challengeServersOf(config),
  } = options
  const authority = config.acme
    ? createAcmeAuthority({ acme: config.acme, db, vault, log, challengeServers })
    : await createDevelopmentCa({ db, vault, directory: join(config.dataDir, 'ca') })
  if (config.production && !config.acme) {
    log.warn('certificates are signed by the development CA, which no browser trusts: set ACME_DIRECTORY_URL')
  }
  let timer: NodeJS.Timeout | undefined
  let off = () => {}

  async function upkeep(): Promise<void> {
    const queued = await queueMissingJobs(db)
    if (queued > 0) log.warn({ queued }, 'verified domains had no job for their certificate')
    await queueOutdatedIssues(db, authority.issuer)
    await queuePlatformJobs(db, config)
    await deleteOldOrders(db)
    await deleteUnusedCertificates(db)
  }

  return {
    issue: createIssueHandler({
      config,
      db,
      vault,
      log,
      authority,
      retry,
      metrics: createIssuerMetrics(options.registry),
    }),
    async start() {
      await upkeep()
      clearInterval(timer)
      timer = setInterval(() => upkeep().catch((err) => log.warn({ err }, 'upkeep of certificates')), upkeepIntervalMs)
      timer.unref()
      // A single-label domain allows no wildcard, so the certificate lists every host and each new host needs a new one.
      if (!config.acme && refusesWildcard(config.edge.domain)) {
        const { key, payload } = platformJob('deployments')
        off()
        off = notifications.on('event', ({ type }) => {
          if (type !== 'project.created' && type !== 'deployment.ready') return
          enqueue(db, { kind: 'issue', key, payload }).catch((err) =>
            log.warn({ err }, 'a new host has no certificate yet'),
          )
        })
      }
    },
    async close() {
      clearInterval(timer)
      off()
      authority.close()
    },
  }
}
