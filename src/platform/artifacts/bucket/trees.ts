// Server trees on this machine: unpacked from the archive that the manifest names, once for all who start the server.
import { randomBytes } from 'node:crypto'
import { access, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { removeTree } from '../../files/remove-tree.ts'
import { type Manifest, MissingObject, StoreUnavailable, type Tree } from '../artifacts.ts'
import type { Folders } from '../local-inventory.ts'
import { unpackTree } from '../trees.ts'
import type { DiskCache } from './disk-cache.ts'
import type { Manifests } from './manifests.ts'
import type { Objects } from './objects.ts'

export type TreesOptions = { objects: Objects; cache: DiskCache; manifests: Manifests; folders: Folders }

export function createTrees({ objects, cache, manifests, folders }: TreesOptions) {
  /** What this process has published. Its worker tests the server before anybody else may start it. */
  const published = new LRUCache<string, Manifest>({ max: 1_000 })
  const inProgress = new Map<string, Promise<void>>()

  /** The name includes the hash, because a deployment that was built twice has two trees for a while. */
  const directoryOf = (deploymentId: string, hash: string) =>
    join(folders.servers, `${deploymentId}.${hash.slice(0, 16)}`)

  async function manifestOf(deploymentId: string): Promise<Manifest | null> {
    try {
      return await manifests.read(deploymentId, true)
    } catch (error) {
      const copy = error instanceof StoreUnavailable ? await manifests.readCopy(deploymentId) : null
      if (!copy) throw error
      return copy
    }
  }

  async function create(directory: string, hash: string): Promise<void> {
    if (await exists(directory)) return
    // Opened now, because the cache may remove the file at any time.
    const archive = await objects.open(hash)
    const temporaryPath = `${directory}.${randomBytes(6).toString('hex')}.new`
    try {
      await unpackTree(archive, temporaryPath)
      await moveInto(temporaryPath, directory)
    } finally {
      await removeTree(temporaryPath)
    }
    // Only the tree is kept.
    await objects.drop(hash)
    cache.added(0)
  }

  /** Another process may have created the same tree. */
  async function moveInto(temporaryPath: string, directory: string): Promise<void> {
    await rename(temporaryPath, directory).catch(async (error) => {
      if (!(await exists(directory))) throw error
      await removeTree(temporaryPath)
    })
  }

  function createOnce(directory: string, hash: string): Promise<void> {
    let creating = inProgress.get(directory)
    if (!creating) {
      creating = create(directory, hash).finally(() => inProgress.delete(directory))
      inProgress.set(directory, creating)
    }
    return creating
  }

  async function openFrom(deploymentId: string, manifest: Manifest | null | undefined): Promise<Tree> {
    const hash = manifest?.tree?.hash
    if (!hash) throw new MissingObject('The artifact store has no tree of this server.')
    const directory = directoryOf(deploymentId, hash)
    const release = cache.pin(directory)
    try {
      await createOnce(directory, hash)
    } catch (error) {
      release()
      throw error
    }
    const { root = '', node, manager } = manifest
    return { directory, root, node, manager, release }
  }

  return {
    /** Takes over the tree that a build has published. */
    async adopt(deploymentId: string, manifest: Manifest, from: string): Promise<void> {
      await moveInto(from, directoryOf(deploymentId, manifest.tree!.hash))
      published.set(deploymentId, manifest)
      cache.added(manifest.tree!.size)
    },
    async open(deploymentId: string): Promise<Tree> {
      const own = published.get(deploymentId)
      if (!own) return openFrom(deploymentId, await manifestOf(deploymentId))
      return openFrom(deploymentId, own).catch(async (error) => {
        // Another worker has published it since.
        published.delete(deploymentId)
        if (!(error instanceof MissingObject)) throw error
        return openFrom(deploymentId, await manifestOf(deploymentId))
      })
    },
  }
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )
