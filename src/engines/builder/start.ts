// The handlers of the builder's jobs, and the caches they share.
import { join } from 'node:path'
import type { Handler } from '../../jobs/worker.ts'
import { openCaches } from './cache.ts'
import { type BuilderDeps, createBuildHandler } from './handler.ts'
import { createReapHandler } from './reap.ts'

export function buildHandlers(deps: Omit<BuilderDeps, 'caches'>): { build: Handler<'build'>; reap: Handler<'reap'> } {
  const { config, artifacts } = deps
  const caches = openCaches(join(config.dataDir, 'cache'), config.build.cacheMb)
  return { build: createBuildHandler({ ...deps, caches }), reap: createReapHandler(artifacts, caches) }
}
