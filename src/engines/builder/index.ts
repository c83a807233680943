// The entry of the builder: the handlers of its jobs, and the interface it needs to prove servers.
import { join } from 'node:path'
import type { Handler } from '../../jobs/worker.ts'
import { openCaches } from './cache.ts'
import { type BuilderDeps, createBuildHandler } from './handler.ts'
import { createReapHandler } from './reap.ts'

export { announceWaits } from './announce.ts'
export type { ServerProofs } from './proof.ts'

export function buildHandlers(deps: Omit<BuilderDeps, 'caches'>): { build: Handler<'build'>; reap: Handler<'reap'> } {
  const { config, artifacts } = deps
  const caches = openCaches(join(config.dataDir, 'cache'), config.build.cacheMb)
  return { build: createBuildHandler({ ...deps, caches }), reap: createReapHandler(deps.db, artifacts, caches) }
}
