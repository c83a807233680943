// The worker role: the handlers of all jobs, the worker that runs them, and periodic maintenance.
import { Counter, type Registry } from 'prom-client'
import { announceWaits, buildHandlers, openDisk } from '../engines/builder/index.ts'
import { createIssuer } from '../engines/certificates/index.ts'
import { createCronHandler } from '../engines/crons/index.ts'
import { startDeliveries } from '../engines/delivery/index.ts'
import { createFollowHandler } from '../engines/following/index.ts'
import { createMailHandlers } from '../engines/mail/index.ts'
import { createAliasHandler } from '../engines/nameserver/index.ts'
import { createProofs } from '../engines/servers/index.ts'
import { createStatusHandler } from '../engines/statuses/index.ts'
import { createPurgeHandler, createStorage } from '../engines/storage/index.ts'
import { createVerification } from '../engines/verification/index.ts'
import type { Taking } from '../jobs/taking.ts'
import { type Handlers, startWorker } from '../jobs/worker.ts'
import { pauseWhile } from '../platform/observe/draining.ts'
import { createZoneWork } from '../services/dns/index.ts'
import { continueLog } from '../services/events/index.ts'
import { setMailEnabled } from '../services/mail/index.ts'
import { openHousekeeping } from './housekeeping.ts'
import { observePlatform } from './metrics.ts'
import type { Closing } from './opening/closing.ts'
import type { Shared } from './opening/shared.ts'
import type { Sandboxed } from './sandbox.ts'

export async function openWorker(deps: Shared & Sandboxed, closing: Closing): Promise<void> {
  const { config, db, notifications, health, log, registry, draining, load } = deps
  await continueLog(db)
  observePlatform(deps)
  await setMailEnabled(db, config.mail !== null)
  const disk = openDisk({ directory: config.dataDir, reserveMb: config.diskReserveMb, log, registry })
  closing.add(health.add('disk', disk.readiness, []))
  const issuer = await createIssuer(deps)
  const zoneWork = createZoneWork(deps)
  closing.add(() => zoneWork.close())
  // Required, so that a kind of job without a handler doesn't compile.
  const handlers: Required<Handlers> = {
    ...buildHandlers({ ...deps, servers: createProofs(deps), disk }),
    ...createVerification(deps),
    ...createAliasHandler(deps),
    follow: createFollowHandler({ ...deps, zoneWork }),
    issue: issuer.issue,
    status: createStatusHandler(deps),
    ...createMailHandlers(deps),
    cron: createCronHandler(deps),
    purge: createPurgeHandler(db),
  }
  closing.add(() => issuer.close())
  const worker = startWorker(db, notifications, log, handlers)
  const { taking } = worker
  closing.add(health.add('jobs', taking.readiness, ['worker']))
  countTakeErrors(taking, registry)
  const deliveries = startDeliveries(deps)
  closing.add(announceWaits(deps))
  closing.add(() => Promise.all([worker.stop(), deliveries.stop()]))
  const storage = createStorage(deps)
  const tasks = openHousekeeping(deps, closing, storage.tasks)
  pauseWhile(draining, [worker, deliveries, tasks])
  closing.add(load.add('jobs', () => worker.running))
  closing.add(storage.start())
  await issuer.start()
}

function countTakeErrors({ errors }: Taking, registry: Registry): void {
  new Counter({
    name: 'berth_job_take_errors_total',
    help: 'Attempts to take a job from the queue that failed, by kind.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [kind, count] of errors) this.inc({ kind }, count)
    },
  })
}
