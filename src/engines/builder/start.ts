// The handlers of the builder's jobs.
import type { Handler } from '../../jobs/worker.ts'
import { type BuilderDeps, createBuildHandler } from './handler.ts'
import { createReapHandler } from './reap.ts'

export function buildHandlers(deps: BuilderDeps): { build: Handler<'build'>; reap: Handler<'reap'> } {
  return { build: createBuildHandler(deps), reap: createReapHandler(deps.artifacts) }
}
