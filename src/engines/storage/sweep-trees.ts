// Removes what deleted deployments and projects left behind: manifests, server trees, work trees, caches and keys.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Artifacts, Remnant, RemnantFolder } from '../../platform/artifacts/artifacts.ts'
import { remnantsIn } from '../../platform/artifacts/local-inventory.ts'
import type { Database } from '../../platform/database/database.ts'
import { sweepKeyFolders } from '../../platform/files/key-folders.ts'
import { removeTree } from '../../platform/files/remove-tree.ts'
import { findProjects, findServed, findToBuild } from '../../services/deployments/index.ts'

export type TreeSweep = {
  db: Database
  artifacts: Artifacts
  dataDir: string
  /** Keeps what changed after this time (milliseconds since 1970). */
  usedBefore: number
  exclusively(work: () => Promise<void>): Promise<boolean>
  log: Logger
  signal: AbortSignal
}

const batchSize = 500
const maxRemoved = 10_000
const removalBatchSize = 20
// Deleted deployments lose their files immediately, so leftovers are few. If more files are unknown, this is probably
// the wrong database.
const maxUnknown = 50

/** Sweeps this machine's own folders. */
export async function sweepTrees(sweep: TreeSweep): Promise<void> {
  for (const folder of sweep.artifacts.inventory.remnants) if (!folder.shared) await sweepRemnants(sweep, folder)
  await sweepKeyFolders()
  await sweepBuilds(sweep)
  await sweepCaches(sweep)
}

/** Sweeps the folders that all machines share. */
export async function sweepShared(sweep: TreeSweep): Promise<void> {
  for (const folder of sweep.artifacts.inventory.remnants) if (folder.shared) await sweepRemnants(sweep, folder)
}

/** Sweeps manifests and server trees, except those of running builds and READY deployments. */
async function sweepRemnants(sweep: TreeSweep, folder: RemnantFolder): Promise<void> {
  const isOld = async ({ usedAt }: Remnant) => ((await usedAt()) ?? sweep.usedBefore) < sweep.usedBefore
  const gone = await listGone(sweep, folder, async (found) => {
    const served = await findServed(
      sweep.db,
      found.map(({ id }) => id),
    )
    const unneeded: Remnant[] = []
    for (const one of found) {
      const state = served.get(one.id)
      // If old, left half-written by a dead worker; otherwise a running build may be writing it.
      if (state === 'READY' && /\.new$/.test(one.name) && (await isOld(one)))
        await removeTree(join(folder.name, one.name))
      else if (state === undefined && (await isOld(one))) unneeded.push(one)
    }
    return unneeded
  })
  await removeAll(sweep, gone, folder.remove)
}

/** Removes work trees without a job, whose worker died. */
async function sweepBuilds(sweep: TreeSweep): Promise<void> {
  const folder = remnantsIn(join(sweep.dataDir, 'builds'), /^(dpl_\w+)(?:\.\w+)?$/, ({ name }) =>
    removeTree(join(folder.name, name)),
  )
  for await (const found of inBatches(folder)) {
    sweep.signal.throwIfAborted()
    const toBuild = await findToBuild(
      sweep.db,
      found.map(({ id }) => id),
    )
    for (const one of found) if (!toBuild.has(one.id)) await folder.remove(one)
  }
}

async function sweepCaches(sweep: TreeSweep): Promise<void> {
  const folder = remnantsIn(join(sweep.dataDir, 'cache'), /^(prj_\w+)$/, ({ name }) =>
    removeTree(join(folder.name, name)),
  )
  const gone = await listGone(sweep, folder, async (found) => {
    const projects = await findProjects(
      sweep.db,
      found.map(({ id }) => id),
    )
    return found.filter(({ id }) => !projects.has(id))
  })
  await removeAll(sweep, gone, folder.remove)
}

/** The unneeded entries of a folder; none if that would be most of them. */
async function listGone(
  { log, signal }: TreeSweep,
  folder: RemnantFolder,
  unneeded: (found: Remnant[]) => Promise<Remnant[]>,
): Promise<Remnant[]> {
  const gone: Remnant[] = []
  let all = 0
  let unknown = 0
  for await (const found of inBatches(folder)) {
    signal.throwIfAborted()
    all += found.length
    for (const one of await unneeded(found)) if (++unknown <= maxRemoved) gone.push(one)
  }
  if (unknown <= maxUnknown || unknown <= all / 2) return gone
  const figures = { folder: folder.name, unknown, of: all }
  log.error(figures, 'the database does not know most of what is stored: nothing is removed')
  return []
}

async function removeAll(sweep: TreeSweep, gone: Remnant[], remove: RemnantFolder['remove']): Promise<void> {
  for (let at = 0; at < gone.length; at += removalBatchSize) {
    sweep.signal.throwIfAborted()
    const done = await sweep.exclusively(async () => {
      for (const one of gone.slice(at, at + removalBatchSize)) await remove(one)
    })
    if (!done) return
  }
}

async function* inBatches(folder: RemnantFolder): AsyncGenerator<Remnant[]> {
  let batch: Remnant[] = []
  for await (const one of folder.list()) {
    batch.push(one)
    if (batch.length < batchSize) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
