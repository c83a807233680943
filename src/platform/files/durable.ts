// Makes written files durable, so that they survive a loss of power.
import { execFile } from 'node:child_process'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'

// Above this, one syncfs is faster than an fsync per file, and doesn't block threads that read files for visitors.
const maxSingle = 24
const syncsAtOnce = 4

/** Syncs a file or a directory. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Syncs all of these files and directories. `roots` are directories on their file systems. */
export async function syncPaths(paths: Iterable<string>, roots: string[]): Promise<void> {
  const different = [...new Set(paths)]
  if (different.length > maxSingle && (await syncFileSystems(roots))) return
  await syncEach(different)
}

async function syncEach(left: string[]): Promise<void> {
  const next = async () => {
    for (let path = left.pop(); path !== undefined; path = left.pop()) await syncPath(path)
  }
  await Promise.all(Array.from({ length: syncsAtOnce }, next))
}

/** Syncs everything on the file systems of these directories; false if this machine has no program for it. */
export function syncFileSystems(roots: string[]): Promise<boolean> {
  return new Promise((resolve) => {
    execFile('sync', ['-f', '--', ...roots], (error) => resolve(error === null))
  })
}

/** Syncs a directory and everything in it, file by file. */
export async function syncTree(root: string): Promise<void> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const synced = entries.filter((entry) => entry.isFile() || entry.isDirectory())
  await syncEach([root, ...synced.map(({ parentPath, name }) => join(parentPath, name))])
}
