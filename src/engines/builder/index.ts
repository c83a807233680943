// The public interface of the builder engine.
import { join } from 'node:path'
import type { Handler } from '../../jobs/worker.ts'
import { type BuilderDeps, createBuildHandler } from './jobs/handler.ts'
import { createReapHandler } from './jobs/reap.ts'
import { createRepairHandler } from './jobs/repair.ts'
import { openCaches } from './run/cache.ts'

export { announceWaits } from './jobs/announce.ts'
export { openDisk } from './run/disk.ts'
export type { ServerProofs } from './run/proof.ts'

type BuildHandlers = { build: Handler<'build'>; repair: Handler<'repair'>; reap: Handler<'reap'> }

export function buildHandlers(options: Omit<BuilderDeps, 'caches'>): BuildHandlers {
  const { config, db, artifacts } = options
  const deps = { ...options, caches: openCaches(join(config.dataDir, 'cache'), config.build.cacheMb) }
  return {
    build: createBuildHandler(deps),
    repair: createRepairHandler(deps),
    reap: createReapHandler(db, artifacts, deps.caches),
  }
}
