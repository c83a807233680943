// Lists what a bucket contains, and removes unused blobs while builds publish, without a lock. A bucket can neither rename
// nor remove on a condition, so each side announces what it does before it checks:
//
//   A build rewrites every blob that is older than some days, then checks whether `removing/` names one of its blobs. If
//   so, it waits until that removal is over. Then it checks all of its blobs once more, and writes the manifest.
//   The sweep lists the blobs it is about to remove in an object in `removing/`, then checks the age of each, and removes
//   those that are still old. It signs its requests first, dated some minutes ago, and the service refuses a signature
//   after 15 minutes: a sweep that was paused in between removes nothing when it continues.
//
// Whichever comes first, either the build finds the name in `removing/`, or the sweep finds a young blob.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { removeTree } from '../../files/remove-tree.ts'
import { type Inventory, MissingObject, StoreUnavailable } from '../artifacts.ts'
import { blobName, type Encoding } from '../blobs.ts'
import { type Folders, manifestName, remnantsIn } from '../local-inventory.ts'
import { type Bucket, readAll, signatureMs } from './client.ts'
import type { Manifests } from './manifests.ts'
import { blobKey, contentOf } from './objects.ts'

export type BucketInventoryOptions = {
  bucket: Bucket
  folders: Folders
  manifests: Manifests
  remove(deploymentId: string): Promise<void>
  /** The maximum age of a blob that a build reuses. */
  reuseMs: number
}

const removedAtOnce = 500
const requestsAtOnce = 16
const markKey = 'scrub-next'
const maxNoteBytes = 1 << 20
const waitMs = 60_000
// How long the service accepts the requests of a removal.
const removalMs = 3 * 60_000
const askEveryMs = 200

const keyOf = (name: string) => {
  const [, hash, encoding] = blobName.exec(name) ?? []
  return blobKey(hash!, encoding as Encoding | undefined)
}

export function createBucketInventory(options: BucketInventoryOptions): Inventory {
  const { bucket, folders, manifests, remove, reuseMs } = options
  const prefixOf = (folder: number) => `files/${folder.toString(16).padStart(2, '0')}/`

  async function* listed(prefix: string) {
    for await (const page of bucket.list(prefix)) {
      for (const { key, ...rest } of page) yield { name: key.slice(prefix.length), ...rest }
    }
  }

  return {
    async *manifests() {
      for await (const { name } of listed('manifests/')) {
        const id = manifestName.exec(name)?.[1]
        if (id !== undefined) yield { id, text: () => textOf(bucket, manifests.keyOf(id)) }
      }
    },
    remnants: [
      {
        name: 'manifests',
        shared: true,
        async *list() {
          for await (const { name, modifiedMs } of listed('manifests/')) {
            const id = manifestName.exec(name)?.[1]
            if (id !== undefined) yield { name, id, usedAt: async () => modifiedMs }
          }
        },
        remove: ({ id }) => remove(id),
      },
      remnantsIn(folders.servers, /^(dpl_\w+)(?:\.[\w.]+)?$/, ({ name }) => removeTree(join(folders.servers, name))),
    ],
    async *blobs(folder) {
      for await (const { name, size } of listed(prefixOf(folder))) if (blobName.test(name)) yield { name, size }
    },
    has: async (name) => (await bucket.head(keyOf(name))) !== null,
    async *unused(folder, isNeeded, usedBefore) {
      let unused: string[] = []
      for await (const { name, modifiedMs } of listed(prefixOf(folder))) {
        const hash = blobName.exec(name)?.[1]
        if (hash === undefined || isNeeded(hash) || modifiedMs >= usedBefore - reuseMs) continue
        unused.push(name)
        if (unused.length < removedAtOnce) continue
        yield unused
        unused = []
      }
      if (unused.length > 0) yield unused
    },
    async removeUnused(names, usedBefore) {
      const signedAt = new Date(Date.now() - signatureMs + removalMs)
      const notice = `removing/${Date.now()}-${randomBytes(6).toString('hex')}`
      await bucket.put(notice, contentOf(Buffer.from(JSON.stringify(names))))
      const removed = { files: 0, bytes: 0 }
      const left = [...names]
      const next = async () => {
        for (let name = left.pop(); name !== undefined; name = left.pop()) {
          const found = await bucket.head(keyOf(name))
          // Negated, so that an object of unknown age stays.
          if (!found || !(found.modifiedMs < usedBefore - reuseMs)) continue
          await bucket.delete(keyOf(name), signedAt)
          removed.files++
          removed.bytes += found.size
        }
      }
      // Waits for all of them even if one fails: builds must know as long as one is running.
      const ends = await Promise.allSettled(Array.from({ length: requestsAtOnce }, next))
      await bucket.delete(notice)
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      return removed
    },
    async tidy() {
      for await (const page of bucket.list('removing/')) {
        for (const { key, modifiedMs } of page) if (isOver(modifiedMs)) await bucket.delete(key)
      }
    },
    async readMark() {
      const found = await bucket.get(markKey)
      return found ? readAll(found.body, 1000) : ''
    },
    writeMark: (text) => bucket.put(markKey, contentOf(Buffer.from(text))),
  }
}

/** Whether the service no longer accepts requests of that sweep. Doubled, because clocks differ. */
const isOver = (modifiedMs: number) => modifiedMs < Date.now() - 2 * removalMs

/** Waits until no sweep is about to remove one of these blobs. */
export async function requireNoRemoval(bucket: Bucket, names: ReadonlyMap<string, unknown>): Promise<void> {
  const endMs = performance.now() + waitMs
  while (await isRemoved(bucket, names)) {
    if (performance.now() > endMs)
      throw new StoreUnavailable('A file of the deployment is being removed from the store.')
    await sleep(askEveryMs)
  }
}

async function isRemoved(bucket: Bucket, names: ReadonlyMap<string, unknown>): Promise<boolean> {
  for await (const page of bucket.list('removing/')) {
    for (const { key, modifiedMs } of page) {
      const found = isOver(modifiedMs) ? null : await bucket.get(key)
      if (!found) continue
      const announced: unknown = JSON.parse(await readAll(found.body, maxNoteBytes))
      if (!Array.isArray(announced) || announced.some((name) => names.has(name))) return true
    }
  }
  return false
}

async function* textOf(bucket: Bucket, key: string): AsyncGenerator<string> {
  const found = await bucket.get(key)
  // Removed in the meantime.
  if (!found) throw new MissingObject(`${key} is gone.`)
  for await (const chunk of found.body) yield chunk.toString('latin1')
}
