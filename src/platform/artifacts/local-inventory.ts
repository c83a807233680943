// Lists what a store directory contains, and removes unused blobs while builds publish, without a lock:
//
//   A build marks a stored file as used now (its mtime), then reads it, and writes it if it is gone.
//   The sweep only considers files that weren't used since long before it read the manifests. It renames such a file,
//   checks its time once more, and renames it back if a build has marked it in the meantime.
//
// Whichever comes first, either the build finds no file, or the sweep finds the mark. If the sweep dies in between, the
// next one renames the file back.
import { createReadStream } from 'node:fs'
import { link, opendir, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Inventory, RemnantFolder } from './artifacts.ts'
import { blobName } from './blobs.ts'

export type Folders = Record<'files' | 'manifests' | 'servers' | 'damaged', string>

export const foldersIn = (root: string): Folders => ({
  files: join(root, 'files'),
  manifests: join(root, 'manifests'),
  servers: join(root, 'servers'),
  damaged: join(root, 'damaged'),
})

export const manifestName = /^(dpl_\w+)\.json$/
/** A deployment's manifest, its tree, or a temporary form of either. */
const remnantName = /^(dpl_\w+)(?:\.json)?(?:\.[\w.]*new)?$/
const removedAtOnce = 500
const renamed = '.swept'

/** `removeDeployment` removes the manifest and the tree of a deployment. */
export function createLocalInventory(
  folders: Folders,
  removeDeployment: (deploymentId: string) => Promise<void>,
): Inventory {
  const folderOf = (folder: number) => join(folders.files, folder.toString(16).padStart(2, '0'))
  const pathOf = (name: string) => join(folders.files, name.slice(0, 2), name)
  const mark = join(folders.files, 'scrub-next')
  return {
    async *manifests() {
      for await (const { name } of await openFolder(folders.manifests)) {
        const id = manifestName.exec(name)?.[1]
        const path = join(folders.manifests, name)
        if (id !== undefined) yield { id, text: () => createReadStream(path, { encoding: 'latin1' }) }
      }
    },
    remnants: [folders.manifests, folders.servers].map((folder) =>
      remnantsIn(folder, remnantName, async ({ id, name }) => {
        await removeDeployment(id)
        // The temporary file of a manifest.
        await rm(join(folder, name), { force: true })
      }),
    ),
    async *blobs(folder) {
      for await (const { name } of await openFolder(folderOf(folder))) {
        if (!blobName.test(name)) continue
        const size = (await stat(join(folderOf(folder), name)).catch(() => null))?.size
        // Undefined if it was removed in the meantime.
        if (size !== undefined) yield { name, size }
      }
    },
    has: async (name) => (await changedAt(pathOf(name))) !== null,
    /** Cleans up temporary files along the way. */
    async *unused(folder, isNeeded, usedBefore) {
      let unused: string[] = []
      for await (const { name } of await openFolder(folderOf(folder))) {
        const path = join(folderOf(folder), name)
        const hash = blobName.exec(name)?.[1]
        if (hash === undefined) await settleTemporary(path, usedBefore)
        else if (!isNeeded(hash) && (await isOld(path, usedBefore))) unused.push(name)
        if (unused.length >= removedAtOnce) {
          yield unused
          unused = []
        }
      }
      if (unused.length > 0) yield unused
    },
    async removeUnused(names, usedBefore) {
      const removed = { files: 0, bytes: 0 }
      for (const name of names) {
        const bytes = await removeUnused(pathOf(name), usedBefore)
        if (bytes === null) continue
        removed.files++
        removed.bytes += bytes
      }
      return removed
    },
    /** Temporary files of large blobs are in the top folder. */
    async tidy(usedBefore) {
      for await (const { name } of await openFolder(folders.files)) {
        await settleTemporary(join(folders.files, name), usedBefore)
      }
    },
    readMark: () => readFile(mark, 'utf8').catch(() => ''),
    async writeMark(text) {
      await writeFile(mark, text).catch((error) => {
        // The folder doesn't exist until something is stored.
        if (error.code !== 'ENOENT') throw error
      })
    },
  }
}

/** The entries of a folder whose names match `pattern`, which captures the id of a deployment. */
export function remnantsIn(folder: string, pattern: RegExp, remove: RemnantFolder['remove']): RemnantFolder {
  return {
    name: folder,
    shared: false,
    async *list() {
      for await (const { name } of await openFolder(folder)) {
        const id = pattern.exec(name)?.[1]
        if (id !== undefined) yield { name, id, usedAt: () => changedAt(join(folder, name)) }
      }
    },
    remove,
  }
}

/** Removes temporary files of builds that died, and restores files that a dead sweep renamed. */
async function settleTemporary(path: string, usedBefore: number): Promise<void> {
  if (path.endsWith(renamed)) await giveBack(path, path.slice(0, -renamed.length))
  else if (path.endsWith('.new') && (await isOld(path, usedBefore))) await rm(path, { force: true })
}

/** Returns the size of the removed file, or null if it stays. */
async function removeUnused(path: string, usedBefore: number): Promise<number | null> {
  const temporaryPath = path + renamed
  try {
    // It may have been used since it was listed.
    if (!(await isOld(path, usedBefore))) return null
    await rename(path, temporaryPath)
    const { mtimeMs, size } = await stat(temporaryPath)
    if (mtimeMs < usedBefore) {
      await unlink(temporaryPath)
      return size
    }
    await giveBack(temporaryPath, path)
  } catch (error) {
    // Another sweep was faster.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return null
}

/** Renames the file back, unless a build has written it again. */
async function giveBack(temporaryPath: string, path: string): Promise<void> {
  await link(temporaryPath, path).catch((error) => {
    // Some file systems have no links. There, a file that a build has written in the meantime is replaced by an equal one.
    if (error.code !== 'EEXIST' && error.code !== 'ENOENT') return rename(temporaryPath, path)
  })
  await rm(temporaryPath, { force: true })
}

async function isOld(path: string, usedBefore: number): Promise<boolean> {
  const at = await changedAt(path)
  return at !== null && at < usedBefore
}

async function changedAt(path: string): Promise<number | null> {
  return (await stat(path).catch(() => null))?.mtimeMs ?? null
}

/** Reads the entries of a folder a few at a time; none if it doesn't exist. */
export async function openFolder(path: string): Promise<AsyncIterable<{ name: string }>> {
  return opendir(path, { bufferSize: 256 }).catch((error) => {
    if (error.code !== 'ENOENT') throw error
    return none()
  })
}

async function* none() {}
