// Removes blobs that no manifest or upload references. The store makes that safe while builds publish.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { createReferences, readManifests } from './references.ts'

export type BlobSweep = {
  artifacts: Artifacts
  /** Keeps files used after this time (milliseconds since 1970), which is longer ago than any build takes. */
  usedBefore: number
  /** Calls `onHash` for needed blobs that no manifest references. */
  alsoNeeded?(onHash: (hash: string) => void): Promise<void>
  /** Runs `work`, which removes files. Returns false if a backup is in progress. */
  exclusively(work: () => Promise<void>): Promise<boolean>
  signal: AbortSignal
}

// The next run removes the rest.
const maxRemoved = 200_000
const pauseMs = 5

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

/** The 256 folders in random order, so that runs that end early don't always see the same ones. */
function shuffled(): number[] {
  return Array.from({ length: 256 }, (_, folder) => ({ folder, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ folder }) => folder)
}
