// The trees of servers on this machine: unpacked from the archive that the manifest names, once for all who start them.
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
  /** What this process has published: its server is proved here before anybody else may start it. */
  const published = new LRUCache<string, Manifest>({ max: 1_000 })
  const making = new Map<string, Promise<void>>()

  /** The hash is in the name: a deployment that was built twice has two trees for a while. */
  const placeOf = (deploymentId: string, hash: string) => join(folders.servers, `${deploymentId}.${hash.slice(0, 16)}`)

  async function manifestOf(deploymentId: string): Promise<Manifest | null> {
    try {
      return await manifests.read(deploymentId, true)
    } catch (error) {
      const copy = error instanceof StoreUnavailable ? await manifests.readCopy(deploymentId) : null
      if (!copy) throw error
      return copy
    }
  }

  async function make(directory: string, hash: string): Promise<void> {
    if (await exists(directory)) return
    // Held open: the cache may remove the file as soon as it is there.
    const archive = await objects.open(hash)
    const aside = `${directory}.${randomBytes(6).toString('hex')}.new`
    try {
      await unpackTree(archive, aside)
      await settle(aside, directory)
    } finally {
      await removeTree(aside)
    }
    // The tree itself is kept.
    await objects.drop(hash)
    cache.added(0)
  }

  /** Another process may have made the same. */
  async function settle(aside: string, directory: string): Promise<void> {
    await rename(aside, directory).catch(async (error) => {
      if (!(await exists(directory))) throw error
      await removeTree(aside)
    })
  }

  function makeOnce(directory: string, hash: string): Promise<void> {
    let made = making.get(directory)
    if (!made) {
      made = make(directory, hash).finally(() => making.delete(directory))
      making.set(directory, made)
    }
    return made
  }

  async function openFrom(deploymentId: string, manifest: Manifest | null | undefined): Promise<Tree> {
    const hash = manifest?.tree?.hash
    if (!hash) throw new MissingObject('The artifact store has no tree of this server.')
    const directory = placeOf(deploymentId, hash)
    const release = cache.pin(directory)
    try {
      await makeOnce(directory, hash)
    } catch (error) {
      release()
      throw error
    }
    const { root = '', node, manager } = manifest
    return { directory, root, node, manager, release }
  }

  return {
    /** The tree that a build has laid out and published. */
    async adopt(deploymentId: string, manifest: Manifest, from: string): Promise<void> {
      await settle(from, placeOf(deploymentId, manifest.tree!.hash))
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
