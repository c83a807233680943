// Removes blobs that no manifest names and no upload needs. The store says how that is safe beside builds that publish.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { createReferences, readManifests } from './references.ts'

export type BlobSweep = {
  artifacts: Artifacts
  /** Files that were used later than that stay, in milliseconds since 1970. Before the sweep began by more than any build takes. */
  usedBefore: number
  /** Calls `onHash` for blobs that no manifest names, but that are needed. */
  alsoNeeded?(onHash: (hash: string) => void): Promise<void>
  /** Runs what removes files, unless a backup is being taken: then false. */
  exclusively(work: () => Promise<void>): Promise<boolean>
  signal: AbortSignal
}

// What is left after that many is removed by the next run.
const maxRemoved = 200_000
const pauseMs = 5

/** Returns what was removed. */
export async function sweepBlobs(sweep: BlobSweep): Promise<{ files: number; bytes: number }> {
  const { artifacts, usedBefore, signal } = sweep
  const { inventory } = artifacts
  const references = createReferences()
  await readManifests(artifacts, signal, references.add)
  await sweep.alsoNeeded?.(references.add)
  const removed = { files: 0, bytes: 0 }
  await inventory.tidy(usedBefore)
  for (const folder of shuffled()) {
    for await (const unused of inventory.unused(folder, references.has, usedBefore)) {
      signal.throwIfAborted()
      const done = await sweep.exclusively(async () => {
        const { files, bytes } = await inventory.removeUnused(unused, usedBefore)
        removed.files += files
        removed.bytes += bytes
      })
      if (!done || removed.files >= maxRemoved) return removed
      await sleep(pauseMs)
    }
  }
  return removed
}

/** All of the 256 folders, in another order each time: a run that ends early does not always see the same ones. */
function shuffled(): number[] {
  return Array.from({ length: 256 }, (_, folder) => ({ folder, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ folder }) => folder)
}
