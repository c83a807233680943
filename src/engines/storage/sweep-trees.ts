// Removes what belongs to deployments and projects that are gone: manifests, server trees, work trees and caches.
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Artifacts } from '../../platform/artifacts.ts'
import type { Database } from '../../platform/database.ts'
import { removeTree } from '../../platform/remove-tree.ts'
import { findProjects, findServed, findToBuild } from '../../services/deployments/stored-files.ts'
import { openFolder } from './references.ts'

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
const mostRemoved = 10_000
const removedAtOnce = 20
// Deleted deployments lose their files at once, so leftovers are few. If more than that is unknown, the database is not
// the one that these files belong to.
const fewUnknown = 50

export async function sweepTrees(sweep: TreeSweep): Promise<void> {
  await sweepDeployments(sweep)
  await sweepBuilds(sweep)
  await sweepCaches(sweep)
}

type Found = { name: string; id: string }

/** Manifests and server trees. Those of builds under way and of READY deployments stay. */
async function sweepDeployments(sweep: TreeSweep): Promise<void> {
  const { db, artifacts, usedBefore } = sweep
  const { manifests, servers } = artifacts.folders
  for (const folder of [manifests, servers]) {
    const unneeded = async (found: Found[]) => {
      const served = await findServed(
        db,
        found.map(({ id }) => id),
      )
      const gone: Found[] = []
      for (const one of found) {
        const state = served.get(one.id)
        // Half-written by a worker that died; a build under way may write it now.
        if (state === 'READY' && /\.new$/.test(one.name) && (await isOld(join(folder, one.name), usedBefore))) {
          await removeTree(join(folder, one.name))
        } else if (state === undefined && (await isOld(join(folder, one.name), usedBefore))) gone.push(one)
      }
      return gone
    }
    const gone = await listGone(sweep, folder, /^(dpl_\w+)(?:\.json)?(?:\.[\w.]*new)?$/, unneeded)
    await removeAll(sweep, gone, async ({ id, name }) => {
      await artifacts.remove(id)
      // The temporary file of a manifest.
      await rm(join(folder, name), { force: true })
    })
  }
}

/** Work trees of builds whose worker died. While a build runs, its job is there. */
async function sweepBuilds(sweep: TreeSweep): Promise<void> {
  const folder = join(sweep.dataDir, 'builds')
  for await (const found of inBatches(folder, /^(dpl_\w+)$/)) {
    sweep.signal.throwIfAborted()
    const toBuild = await findToBuild(
      sweep.db,
      found.map(({ id }) => id),
    )
    for (const { id, name } of found) if (!toBuild.has(id)) await removeTree(join(folder, name))
  }
}

async function sweepCaches(sweep: TreeSweep): Promise<void> {
  const folder = join(sweep.dataDir, 'cache')
  const gone = await listGone(sweep, folder, /^(prj_\w+)$/, async (found) => {
    const projects = await findProjects(
      sweep.db,
      found.map(({ id }) => id),
    )
    return found.filter(({ id }) => !projects.has(id))
  })
  await removeAll(sweep, gone, ({ name }) => removeTree(join(folder, name)))
}

/** What `unneeded` picks from a folder, unless it is most of it. */
async function listGone(
  { log, signal }: TreeSweep,
  folder: string,
  pattern: RegExp,
  unneeded: (found: Found[]) => Promise<Found[]>,
): Promise<Found[]> {
  const gone: Found[] = []
  let all = 0
  let unknown = 0
  for await (const found of inBatches(folder, pattern)) {
    signal.throwIfAborted()
    all += found.length
    for (const one of await unneeded(found)) if (++unknown <= mostRemoved) gone.push(one)
  }
  if (unknown <= fewUnknown || unknown <= all / 2) return gone
  log.error({ folder, unknown, of: all }, 'the database does not know most of what is stored: nothing is removed')
  return []
}

async function removeAll(sweep: TreeSweep, gone: Found[], remove: (one: Found) => Promise<void>): Promise<void> {
  for (let at = 0; at < gone.length; at += removedAtOnce) {
    sweep.signal.throwIfAborted()
    const done = await sweep.exclusively(async () => {
      for (const one of gone.slice(at, at + removedAtOnce)) await remove(one)
    })
    if (!done) return
  }
}

/** The entries of a folder whose names match, with what the pattern finds in them. */
async function* inBatches(folder: string, pattern: RegExp): AsyncGenerator<Found[]> {
  let batch: Found[] = []
  for await (const { name } of await openFolder(folder)) {
    const id = pattern.exec(name)?.[1]
    if (id !== undefined) batch.push({ name, id })
    if (batch.length < askedAtOnce) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

async function isOld(path: string, usedBefore: number): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found !== null && found.mtimeMs < usedBefore
}
