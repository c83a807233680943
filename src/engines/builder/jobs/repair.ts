// The repair job: restores a stored file whose copies are all damaged by building its commit again.
import { join } from 'node:path'
import type { Handler, JobRun } from '../../../jobs/worker.ts'
import { removeTree } from '../../../platform/files/remove-tree.ts'
import { findBuild, openVariables } from '../../../services/deployments/index.ts'
import { openAccess } from '../../../services/projects/index.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import { buildDirectory, runBuild } from './build.ts'
import type { BuilderDeps } from './handler.ts'

const retryDelaysMs = [60_000, 600_000] as const

/** Discards output, because the customer's log ended with the original build. */
const silentLog: BuildLog = {
  step() {},
  steps: () => [],
  system() {},
  warn() {},
  warnings: () => [],
  output() {},
  endCommand() {},
  async close() {},
}

export function createRepairHandler(deps: BuilderDeps): Handler<'repair'> {
  const { config, db, vault, artifacts, log } = deps

  /** Stores what the build makes, which replaces damaged files; the manifest stays as it is if it can be read. */
  async function rebuild(
    deploymentId: string,
    hash: string | undefined,
    { signal, requireHeld }: JobRun,
  ): Promise<void> {
    const build = await findBuild(db, deploymentId)
    if (build?.state !== 'READY' || build.suspended) return
    const manifest = await artifacts.read(deploymentId, { fresh: true })
    // Only this job uses the directory, so its content is from a worker that died or lost the job.
    const attempts = buildDirectory(config, `${deploymentId}.${hash ?? 'manifest'}`)
    const clear = () => requireHeld(db).then(() => removeTree(attempts))
    // A server's tree isn't made of stored files, and the server may be running from it.
    const serverDirectory = () => join(attempts, 'server')
    const blobsOnly = { ...artifacts, async publish() {}, serverDirectory }
    const variables = await openVariables(db, vault, build)
    const access = await openAccess(db, vault, build.projectId)
    // A rebuilt tree archive never has the same hash, so the manifest must name the new one.
    const isTree = manifest?.tree !== undefined && manifest.tree.hash === hash
    const tools = { ...deps, artifacts: manifest && !isTree ? blobsOnly : artifacts }
    const callbacks = { log: silentLog, async onCloned() {}, async onDetected() {}, requireHeld: () => requireHeld(db) }
    await clear()
    await runBuild(tools, { build, variables, access, attempts, signal, ...callbacks }, async () => {}).finally(clear)
  }

  async function isWhole(hash: string | undefined, deploymentId: string): Promise<boolean> {
    const manifest = await artifacts.read(deploymentId, { fresh: true })
    if (hash === undefined) return manifest !== null
    return (await artifacts.repair(hash)) || (manifest?.kind === 'node' && manifest.tree?.hash !== hash)
  }

  return {
    concurrency: 1,
    retryDelaysMs,
    async run({ hash, deploymentIds }, job) {
      for (const id of deploymentIds) {
        if (await isWhole(hash, id)) return
        try {
          await rebuild(id, hash, job)
        } catch (err) {
          if (!(err instanceof BuildFailure)) throw err
          log.warn({ err, deploymentId: id }, 'a deployment could not be built again to repair its files')
        }
        if (!(await isWhole(hash, id))) continue
        // Also if the file is no longer needed because the manifest names another one.
        if (hash) await artifacts.clearReport(hash)
        return void log.info({ file: hash ?? id, deploymentId: id }, 'a damaged file is repaired')
      }
      throw new Error(`building ${deploymentIds.join(', ')} again did not bring ${hash ?? 'the manifest'} back`)
    },
    async giveUp({ hash, deploymentIds }) {
      log.error({ file: hash, deploymentIds }, 'a damaged file could not be repaired: deploy its project again')
    },
  }
}
