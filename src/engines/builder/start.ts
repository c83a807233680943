// The handlers of the builder's jobs, with the package registry that npm names.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Handler } from '../../jobs/worker.ts'
import { openCaches } from './cache.ts'
import { type BuilderDeps, createBuildHandler } from './handler.ts'
import { createReapHandler } from './reap.ts'

const run = promisify(execFile)

export function buildHandlers(deps: Omit<BuilderDeps, 'packageRegistry' | 'caches'>): {
  build: Handler<'build'>
  reap: Handler<'reap'>
} {
  const { log, artifacts, config } = deps
  const caches = openCaches(join(config.dataDir, 'cache'), config.build.cacheMb)
  // Asked of npm, because a company's mirror is configured there and nowhere else; it takes half a second, which a
  // start need not wait for.
  const packageRegistry = run('npm', ['config', 'get', 'registry']).then(({ stdout }) => stdout.trim())
  packageRegistry.catch((err) => log.error({ err }, 'npm does not say which registry it uses'))
  const builder = { ...deps, packageRegistry, caches }
  return { build: createBuildHandler(builder), reap: createReapHandler(artifacts, caches) }
}
