// The repair job: a file of the store that is damaged in all its copies is written anew by building its commit again.
import { join } from 'node:path'
import type { Handler } from '../../jobs/worker.ts'
import { randomLabel } from '../../platform/ids.ts'
import { findBuild, openVariables } from '../../services/deployments/builds.ts'
import { openAccess } from '../../services/projects/repository-access.ts'
import { buildDirectory, removeAttempt, runBuild } from './build.ts'
import { BuildFailure } from './failure.ts'
import type { BuilderDeps } from './handler.ts'
import type { BuildLog } from './log.ts'

const retryDelaysMs = [60_000, 600_000] as const

/** The customer's log ended with the deployment's own build. */
const silent: BuildLog = {
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
  async function rebuild(deploymentId: string, hash: string | undefined, signal: AbortSignal): Promise<void> {
    const build = await findBuild(db, deploymentId)
    if (build?.state !== 'READY' || build.suspended) return
    const known = await artifacts.read(deploymentId, { fresh: true })
    // The tree of a server is not made of stored files, and the server may be running from it.
    const scratch = join(buildDirectory(config, deploymentId), randomLabel(8))
    const serverDirectory = () => scratch
    const blobsOnly = { ...artifacts, async publish() {}, serverDirectory }
    const variables = await openVariables(db, vault, build)
    const access = await openAccess(db, vault, build.projectId)
    // The archive of a tree never comes out the same again: the manifest names the new one.
    const isTree = known?.tree !== undefined && known.tree.hash === hash
    const tools = { ...deps, artifacts: known && !isTree ? blobsOnly : artifacts }
    const deaf = { async cloned() {}, async detected() {}, async requireHeld() {} }
    const given = { build, variables, access, log: silent, signal, ...deaf }
    await runBuild(tools, given, async () => {}).finally(() => removeAttempt(scratch))
  }

  async function isWhole(hash: string | undefined, deploymentId: string): Promise<boolean> {
    const manifest = await artifacts.read(deploymentId, { fresh: true })
    if (hash === undefined) return manifest !== null
    return (await artifacts.mend(hash)) || (manifest?.kind === 'node' && manifest.tree?.hash !== hash)
  }

  return {
    concurrency: 1,
    retryDelaysMs,
    async run({ hash, deploymentIds }, { signal }) {
      for (const id of deploymentIds) {
        if (await isWhole(hash, id)) return
        try {
          await rebuild(id, hash, signal)
        } catch (err) {
          if (!(err instanceof BuildFailure)) throw err
          log.warn({ err, deploymentId: id }, 'a deployment could not be built again to repair its files')
        }
        if (!(await isWhole(hash, id))) continue
        // Also where the file is not needed any more, because its manifest names another one.
        if (hash) await artifacts.settle(hash)
        return void log.info({ file: hash ?? id, deploymentId: id }, 'a damaged file is repaired')
      }
      throw new Error(`building ${deploymentIds.join(', ')} again did not bring ${hash ?? 'the manifest'} back`)
    },
    async giveUp({ hash, deploymentIds }) {
      log.error({ file: hash, deploymentIds }, 'a damaged file could not be repaired: deploy its project again')
    },
  }
}
