// The storage engine: periodic tasks that remove unneeded files and repair damaged ones.
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { Counter, Gauge, Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Task } from '../../jobs/tasks.ts'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import type { Database } from '../../platform/database/database.ts'
import { whileNoBackup } from '../../services/deployments/index.ts'
import { readNeeded } from '../../services/uploads/index.ts'
import { measureOld } from './measure.ts'
import { repairDamaged } from './repair.ts'
import { scrub } from './scrub.ts'
import { sweepBlobs } from './sweep-blobs.ts'
import { sweepShared, sweepTrees } from './sweep-trees.ts'

export { createPurgeHandler } from './purge.ts'

export type StorageOptions = {
  config: Pick<Config, 'dataDir' | 'build'>
  db: Database
  artifacts: Artifacts
  log: Logger
  registry?: Registry
}

export type Storage = {
  sweep(signal: AbortSignal): Promise<void>
  mend(signal: AbortSignal): Promise<void>
  /** Each task may run in several processes at once and may be killed at any moment. */
  tasks: Task[]
  /** Removes what builds of dead workers left behind. Returns a function that stops it. */
  start(): () => Promise<void>
}

const hourMs = 3600_000
const backupWaitMs = 60_000

export function createStorage({ config, db, artifacts, log, registry = new Registry() }: StorageOptions): Storage {
  // A build marks its files when it stores them, and publishes before its timeout.
  const graceMs = hourMs + 2 * config.build.timeoutMs
  new Gauge({
    name: 'berth_artifacts_damaged',
    help: 'Stored files that are known to be missing or damaged and are not repaired yet.',
    registers: [registry],
    async collect() {
      // Keeps the last value while the store is unavailable.
      const damaged = await artifacts.damaged().catch(() => null)
      if (damaged) this.set(damaged.length)
    },
  })
  const removedBytes = new Counter({
    name: 'berth_artifacts_removed_bytes_total',
    help: 'Bytes of stored files that were removed because no deployment needs them.',
    registers: [registry],
  })

  const optionsOf = (signal: AbortSignal) => ({
    artifacts,
    usedBefore: Date.now() - graceMs,
    exclusively: (work: () => Promise<void>) => whileNoBackup(db, backupWaitMs, work, signal),
    signal,
  })

  function sweepOld(signal: AbortSignal): Promise<void> {
    return sweepTrees({ ...optionsOf(signal), db, dataDir: config.dataDir, log })
  }

  async function sweepStore(signal: AbortSignal): Promise<void> {
    await sweepShared({ ...optionsOf(signal), db, dataDir: config.dataDir, log })
    const alsoNeeded = (onHash: (hash: string) => void) => readNeeded(db, signal, onHash)
    const removed = await sweepBlobs({ ...optionsOf(signal), alsoNeeded })
    removedBytes.inc(removed.bytes)
    if (removed.files > 0) log.info(removed, 'stored files that no deployment needs were removed')
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    await sweepOld(signal)
    await sweepStore(signal)
  }

  const mendAll = (signal: AbortSignal) => repairDamaged({ db, artifacts, log }, signal)
  const measure = async (signal: AbortSignal) => {
    const measured = await measureOld(db, artifacts, signal)
    if (measured > 0) log.info({ measured }, 'deployments whose bytes were not counted yet')
  }
  const here = `the disk of ${hostname()}`
  // One machine maintains a shared store for all.
  const stored = artifacts.shared ? 'the artifact store' : here
  const sweeps: Task[] = artifacts.shared
    ? [
        { name: `sweep ${here}`, everyMs: 24 * hourMs, run: sweepOld },
        { name: `sweep ${stored}`, everyMs: 24 * hourMs, run: sweepStore },
      ]
    : [{ name: `sweep ${here}`, everyMs: 24 * hourMs, run: sweep }]
  return {
    sweep,
    mend: mendAll,
    tasks: [
      ...sweeps,
      { name: `scrub ${stored}`, everyMs: hourMs, run: async (signal) => void (await scrub(artifacts, signal)) },
      { name: `mend ${stored}`, everyMs: 60_000, run: mendAll },
      { name: `measure ${stored}`, everyMs: 24 * hourMs, run: measure },
    ],
    start() {
      const stopping = new AbortController()
      const sweeping = sweepOld(stopping.signal).catch(
        (err) => stopping.signal.aborted || log.warn({ err }, 'the sweep of what dead workers left behind'),
      )
      return async () => {
        stopping.abort()
        await sweeping
      }
    },
  }
}
