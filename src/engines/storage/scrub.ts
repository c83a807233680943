// Slowly reads all blobs in a loop and reports those whose content doesn't match their hash.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { blobName, type Encoding } from '../../platform/artifacts/blobs.ts'

/** How many of the 256 folders each run reads. With one run an hour, everything is read within six days. */
export const foldersPerRun = 2

const bytesPerMs = 16_000
const minPauseMs = 2

/** Continues where the previous run ended. Returns how many files were read. */
export async function scrub(artifacts: Artifacts, signal: AbortSignal, folders = foldersPerRun): Promise<number> {
  const { inventory } = artifacts
  let read = 0
  for (let count = 0; count < folders; count++) {
    const next = Number.parseInt(await inventory.readMark(), 16) & 0xff || 0
    for await (const { name, size } of inventory.blobs(next)) {
      signal.throwIfAborted()
      const [, hash, encoding] = blobName.exec(name) ?? []
      read++
      const isWhole = await artifacts.isWhole(hash!, encoding as Encoding | undefined)
      // Unless it was just removed.
      if (!isWhole && (await inventory.has(name))) await artifacts.report(name)
      await sleep(Math.max(minPauseMs, size / bytesPerMs))
    }
    await inventory.writeMark(((next + 1) % 256).toString(16))
  }
  return read
}
