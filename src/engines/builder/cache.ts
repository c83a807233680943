// Dependencies and framework caches of a project, kept from one build to the next.
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

// Where package managers and frameworks keep what they need not make again, relative to the root directory.
const cachedFolders = ['node_modules', '.next/cache', '.astro', '.cache', '.parcel-cache', '.svelte-kit', '.nuxt']

export type BuildCache = {
  /** Moves the cache into the tree; tells whether its dependencies are those of the key. */
  restore(key: string | null): Promise<'same' | 'other' | 'none'>
  /** Moves it out of the tree again. */
  save(key: string | null): Promise<void>
  /** Downloads of the package manager; shared by all builds of the project. */
  downloads: string
}

/**
 * Moved and not copied, which costs nothing and lets one build at a time have it: a second one at the same time finds
 * none and begins anew.
 */
export function openCache(directory: string, root: string): BuildCache {
  const keyFile = join(directory, 'key')
  const move = async (from: string, to: string) => {
    await mkdir(dirname(to), { recursive: true })
    return rename(from, to).then(
      () => true,
      () => false,
    )
  }
  return {
    downloads: join(directory, 'downloads'),
    async restore(key) {
      await mkdir(join(directory, 'downloads'), { recursive: true })
      const known = await readFile(keyFile, 'utf8').catch(() => null)
      // Without its key, a cache that a crash left half moved is never taken for whole.
      await rm(keyFile, { force: true })
      if (known === null) return 'none'
      let moved = false
      for (const folder of cachedFolders) {
        moved = (await move(join(directory, 'folders', folder), join(root, folder))) || moved
      }
      return moved && key !== null && known === key ? 'same' : 'other'
    },
    async save(key) {
      const folders = join(directory, 'folders')
      await rm(folders, { recursive: true, force: true })
      for (const folder of cachedFolders) await move(join(root, folder), join(folders, folder))
      await writeFile(keyFile, key ?? '')
    },
  }
}
