// The worker role's share of building: the registry, and the handlers of its jobs.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { startWorker, type Worker } from '../../jobs/worker.ts'
import { type BuilderDeps, createBuildHandler } from './handler.ts'
import { createReapHandler } from './reap.ts'

const run = promisify(execFile)

export function startBuilds(deps: Omit<BuilderDeps, 'packageRegistry'>): Worker {
  const { log, db, notifications, artifacts } = deps
  // Asked of npm, because a company's mirror is configured there and nowhere else; it takes half a second, which a
  // start need not wait for.
  const packageRegistry = run('npm', ['config', 'get', 'registry']).then(({ stdout }) => stdout.trim())
  packageRegistry.catch((err) => log.error({ err }, 'npm does not say which registry it uses'))
  const builder = { ...deps, packageRegistry }
  return startWorker(db, notifications, log, {
    build: createBuildHandler(builder),
    reap: createReapHandler(artifacts),
  })
}
