// Removes blobs that no manifest names. Safe beside builds that publish, without any lock between them:
//
//   A build marks a stored file as used now (its mtime), then reads it, and writes it if it is gone.
//   The sweep takes only files that were not used since long before it read the manifests. It renames such a file, looks
//   at its time once more, and gives it back if a build has marked it meanwhile.
//
// Whichever comes first, the build either finds no file, or the sweep finds the mark. A sweep that dies in between leaves
// the renamed file, which the next one gives back.
import { link, rename, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Artifacts } from '../../platform/artifacts.ts'
import { blobName } from '../../platform/blobs.ts'
import { createReferences, openFolder, type References, readManifests } from './references.ts'

export type BlobSweep = {
  artifacts: Artifacts
  /** Files that were used later than that stay, in milliseconds since 1970. Before the sweep began by more than any build takes. */
  usedBefore: number
  /** Runs what removes files, unless a backup is being taken: then false. */
  exclusively(work: () => Promise<void>): Promise<boolean>
  signal: AbortSignal
}

// What is left after that many is removed by the next run.
const mostRemoved = 200_000
const removedAtOnce = 500
const pauseMs = 5
const renamed = '.swept'

/** Returns what was removed. */
export async function sweepBlobs(sweep: BlobSweep): Promise<{ files: number; bytes: number }> {
  const { artifacts, signal } = sweep
  const references = createReferences()
  await readManifests(artifacts, signal, references.add)
  const removed = { files: 0, bytes: 0 }
  await sweepTemporary(artifacts.folders.files, sweep)
  for (const folder of shuffled()) {
    const directory = join(artifacts.folders.files, folder)
    for await (const unused of unusedIn(directory, references, sweep)) {
      signal.throwIfAborted()
      const done = await sweep.exclusively(async () => {
        for (const path of unused) {
          const bytes = await removeUnused(path, sweep.usedBefore)
          if (bytes === null) continue
          removed.files++
          removed.bytes += bytes
        }
      })
      if (!done || removed.files >= mostRemoved) return removed
      await sleep(pauseMs)
    }
  }
  return removed
}

/** All of the 256 folders, in another order each time: a run that ends early does not always see the same ones. */
function shuffled(): string[] {
  return Array.from({ length: 256 }, (_, index) => ({ name: index.toString(16).padStart(2, '0'), at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ name }) => name)
}

/** Paths of unused blobs, some at a time. Temporary files are dealt with on the way. */
async function* unusedIn(
  directory: string,
  references: References,
  { usedBefore }: BlobSweep,
): AsyncGenerator<string[]> {
  let unused: string[] = []
  for await (const { name } of await openFolder(directory)) {
    const path = join(directory, name)
    const hash = blobName.exec(name)?.[1]
    if (hash === undefined) await settleTemporary(path, usedBefore)
    else if (!references.has(hash) && (await isOld(path, usedBefore))) unused.push(path)
    if (unused.length >= removedAtOnce) {
      yield unused
      unused = []
    }
  }
  if (unused.length > 0) yield unused
}

/** Large files are written in the folder above. */
async function sweepTemporary(directory: string, { usedBefore }: BlobSweep): Promise<void> {
  for await (const { name } of await openFolder(directory)) await settleTemporary(join(directory, name), usedBefore)
}

/** Files of builds that died are removed, those of sweeps that died are given back. */
async function settleTemporary(path: string, usedBefore: number): Promise<void> {
  if (path.endsWith(renamed)) await giveBack(path, path.slice(0, -renamed.length))
  else if (path.endsWith('.new') && (await isOld(path, usedBefore))) await rm(path, { force: true })
}

/** Its bytes, or null if it stays. */
async function removeUnused(path: string, usedBefore: number): Promise<number | null> {
  const aside = path + renamed
  try {
    // It may wait here for its turn since it was listed.
    if (!(await isOld(path, usedBefore))) return null
    await rename(path, aside)
    const { mtimeMs, size } = await stat(aside)
    if (mtimeMs < usedBefore) {
      await unlink(aside)
      return size
    }
    await giveBack(aside, path)
  } catch (error) {
    // Another sweep was faster.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return null
}

/** Unless a build has written it anew. */
async function giveBack(aside: string, path: string): Promise<void> {
  await link(aside, path).catch((error) => {
    // Some file systems have no links; then a file that a build has written meanwhile is replaced by its equal.
    if (error.code !== 'EEXIST' && error.code !== 'ENOENT') return rename(aside, path)
  })
  await rm(aside, { force: true })
}

async function isOld(path: string, usedBefore: number): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found !== null && found.mtimeMs < usedBefore
}
