// Reads all blobs again and again, slowly, and reports those whose content is not what their name says.
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Artifacts } from '../../platform/artifacts.ts'
import { blobName, type Encoding } from '../../platform/blobs.ts'
import { openFolder } from './references.ts'

/** So many of the 256 folders for each run: with a run an hour, everything is read within six days. */
export const foldersPerRun = 2

const bytesPerMs = 16_000
const leastPauseMs = 2

/** Goes on where the run before it ended. Returns how many files were read. */
export async function scrub(artifacts: Artifacts, signal: AbortSignal, folders = foldersPerRun): Promise<number> {
  const place = join(artifacts.folders.files, 'scrub-next')
  let read = 0
  for (let count = 0; count < folders; count++) {
    const next = Number.parseInt(await readFile(place, 'utf8').catch(() => '0'), 16) & 0xff || 0
    const directory = join(artifacts.folders.files, next.toString(16).padStart(2, '0'))
    for await (const { name } of await openFolder(directory)) {
      signal.throwIfAborted()
      const [, hash, encoding] = blobName.exec(name) ?? []
      const size = hash && (await stat(join(directory, name)).catch(() => null))?.size
      // Another file, or removed meanwhile.
      if (hash === undefined || typeof size !== 'number') continue
      read++
      if (!(await artifacts.isWhole(hash, encoding as Encoding | undefined)))
        await reportUnlessGone(artifacts, directory, name)
      await sleep(Math.max(leastPauseMs, size / bytesPerMs))
    }
    await writeFile(place, ((next + 1) % 256).toString(16)).catch((error) => {
      // Nothing is stored yet.
      if (error.code !== 'ENOENT') throw error
    })
  }
  return read
}

async function reportUnlessGone(artifacts: Artifacts, directory: string, name: string): Promise<void> {
  if (await stat(join(directory, name)).catch(() => null)) await artifacts.report(name)
}
