// The worker role's share of building: the sandbox, the registry, and the handlers of its jobs.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { startWorker, type Worker } from '../../jobs/worker.ts'
import { createSandbox } from '../../sandbox/sandbox.ts'
import { type BuilderDeps, createBuildHandler } from './handler.ts'
import { createReapHandler } from './reap.ts'

const run = promisify(execFile)

export async function startBuilds(deps: Omit<BuilderDeps, 'sandbox' | 'registry'>): Promise<Worker> {
  const { config, log, db, notifications, artifacts } = deps
  const mode = config.production && config.build.sandbox === 'auto' ? 'bubblewrap' : config.build.sandbox
  const sandbox = await createSandbox(mode, { searchPath: config.searchPath })
  if (sandbox.warning) log.warn({ driver: sandbox.driver }, sandbox.warning)
  // Asked of npm, because a company's mirror is configured there and nowhere else; it takes half a second, which a
  // start need not wait for.
  const registry = run('npm', ['config', 'get', 'registry']).then(({ stdout }) => stdout.trim())
  registry.catch((err) => log.error({ err }, 'npm does not say which registry it uses'))
  const builder = { ...deps, sandbox, registry }
  const worker = startWorker(db, notifications, log, {
    build: createBuildHandler(builder),
    reap: createReapHandler(artifacts),
  })
  return {
    async stop() {
      await worker.stop()
      await sandbox.close()
    },
  }
}
