// Removes what belongs to deployments and projects that are gone: manifests, server trees, work trees, caches and keys.
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
  /** What changed later than that stays, in milliseconds since 1970. */
  usedBefore: number
  exclusively(work: () => Promise<void>): Promise<boolean>
  log: Logger
  signal: AbortSignal
}

const askedAtOnce = 500
const maxRemoved = 10_000
const removedAtOnce = 20
// Deleted deployments lose their files at once, so leftovers are few. If more than that is unknown, the database is not
// the one that these files belong to.
const fewUnknown = 50

/** What this machine has. */
export async function sweepTrees(sweep: TreeSweep): Promise<void> {
  for (const folder of sweep.artifacts.inventory.remnants) if (!folder.shared) await sweepRemnants(sweep, folder)
  await sweepKeyFolders()
  await sweepBuilds(sweep)
  await sweepCaches(sweep)
}

/** What a store has for all machines. */
export async function sweepShared(sweep: TreeSweep): Promise<void> {
  for (const folder of sweep.artifacts.inventory.remnants) if (folder.shared) await sweepRemnants(sweep, folder)
}

/** Manifests and server trees. Those of builds under way and of READY deployments stay. */
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
      // Half-written by a worker that died; a build under way may write it now.
      if (state === 'READY' && /\.new$/.test(one.name) && (await isOld(one)))
        await removeTree(join(folder.name, one.name))
      else if (state === undefined && (await isOld(one))) unneeded.push(one)
    }
    return unneeded
  })
  await removeAll(sweep, gone, folder.remove)
}

/** Work trees of builds and repairs whose worker died. While one runs, its job is there. */
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

/** What `unneeded` picks from a folder, unless it is most of it. */
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
  if (unknown <= fewUnknown || unknown <= all / 2) return gone
  const figures = { folder: folder.name, unknown, of: all }
  log.error(figures, 'the database does not know most of what is stored: nothing is removed')
  return []
}

async function removeAll(sweep: TreeSweep, gone: Remnant[], remove: RemnantFolder['remove']): Promise<void> {
  for (let at = 0; at < gone.length; at += removedAtOnce) {
    sweep.signal.throwIfAborted()
    const done = await sweep.exclusively(async () => {
      for (const one of gone.slice(at, at + removedAtOnce)) await remove(one)
    })
    if (!done) return
  }
}

async function* inBatches(folder: RemnantFolder): AsyncGenerator<Remnant[]> {
  let batch: Remnant[] = []
  for await (const one of folder.list()) {
    batch.push(one)
    if (batch.length < askedAtOnce) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
