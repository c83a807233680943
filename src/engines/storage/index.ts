// The entry of the storage engine: periodic tasks that keep the disk free of what nothing needs, and its content whole.
import type { Logger } from 'pino'
import { Counter, Gauge, Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Artifacts } from '../../platform/artifacts.ts'
import type { Database } from '../../platform/database.ts'
import { whileNoBackup } from '../../services/deployments/stored-files.ts'
import { mend } from './mend.ts'
import { scrub } from './scrub.ts'
import { sweepBlobs } from './sweep-blobs.ts'
import { sweepTrees } from './sweep-trees.ts'

export type StorageOptions = {
  config: Pick<Config, 'dataDir' | 'build'>
  db: Database
  artifacts: Artifacts
  log: Logger
  registry?: Registry
  /** For tests: how long ago a file must have been used last to be removed. */
  graceMs?: number
}

export type StorageTask = { name: string; everyMs: number; run(signal: AbortSignal): Promise<void> }

const hourMs = 3600_000
const backupWaitMs = 60_000

/** Each may run in several processes at once, and may be killed at any moment. The first one is meant for every start, too. */
export function storageTasks(options: StorageOptions): Record<'sweep' | 'scrub' | 'mend', StorageTask> {
  const { config, db, artifacts, log, registry = new Registry() } = options
  // A build marks its files when it stores them, and publishes before its time is up.
  const graceMs = options.graceMs ?? hourMs + 2 * config.build.timeoutMs
  new Gauge({
    name: 'berth_artifacts_damaged',
    help: 'Stored files that are known to be missing or damaged and are not repaired yet.',
    registers: [registry],
    async collect() {
      this.set((await artifacts.damaged()).length)
    },
  })
  const removedBytes = new Counter({
    name: 'berth_artifacts_removed_bytes_total',
    help: 'Bytes of stored files that were removed because no deployment needs them.',
    registers: [registry],
  })

  async function sweep(signal: AbortSignal): Promise<void> {
    const usedBefore = Date.now() - graceMs
    const exclusively = (work: () => Promise<void>) => whileNoBackup(db, backupWaitMs, work)
    await sweepTrees({ db, artifacts, dataDir: config.dataDir, usedBefore, exclusively, log, signal })
    const removed = await sweepBlobs({ artifacts, usedBefore, exclusively, signal })
    removedBytes.inc(removed.bytes)
    if (removed.files > 0) log.info(removed, 'stored files that no deployment needs were removed')
  }

  return {
    sweep: { name: 'storage sweep', everyMs: 24 * hourMs, run: sweep },
    scrub: { name: 'storage scrub', everyMs: hourMs, run: async (signal) => void (await scrub(artifacts, signal)) },
    mend: { name: 'storage mend', everyMs: 60_000, run: (signal) => mend({ db, artifacts, log }, signal) },
  }
}
