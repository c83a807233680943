// What a bucket holds, and how blobs are removed there beside builds that publish, without any lock. A bucket can neither
// rename nor remove on a condition, so each tells the other what it does before it looks:
//
//   A build writes every blob anew that is older than some days, then looks whether one of its blobs is named in
//   `removing/`. If so, it waits until that is over. Then it asks for all of its blobs once more, and writes the manifest.
//   The sweep names the blobs it is about to remove in an object of `removing/`, then looks at the age of each, and removes
//   those that are still old. Its requests are signed before it looks, as of some minutes ago, and the service takes no
//   signature after a quarter of an hour: a sweep that was stopped in between removes nothing when it goes on later.
//
// Whichever comes first, the build finds the name in `removing/`, or the sweep finds the blob young.
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
  /** How old a blob may be that a build uses again. */
  reuseMs: number
}

const removedAtOnce = 500
const requestsAtOnce = 16
const markKey = 'scrub-next'
const maxNoteBytes = 1 << 20
const waitMs = 60_000
// How long the requests of a removal are accepted.
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
      const told = `removing/${Date.now()}-${randomBytes(6).toString('hex')}`
      await bucket.put(told, contentOf(Buffer.from(JSON.stringify(names))))
      const removed = { files: 0, bytes: 0 }
      const left = [...names]
      const next = async () => {
        for (let name = left.pop(); name !== undefined; name = left.pop()) {
          const found = await bucket.head(keyOf(name))
          // Negated, so that an object whose age is not known stays.
          if (!found || !(found.modifiedMs < usedBefore - reuseMs)) continue
          await bucket.delete(keyOf(name), signedAt)
          removed.files++
          removed.bytes += found.size
        }
      }
      // All of them, also if one fails: as long as one runs, builds must know.
      const ends = await Promise.allSettled(Array.from({ length: requestsAtOnce }, next))
      await bucket.delete(told)
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

/** No request of that sweep is accepted any more, whatever it does; twice the time, for clocks differ. */
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
      const told: unknown = JSON.parse(await readAll(found.body, maxNoteBytes))
      if (!Array.isArray(told) || told.some((name) => names.has(name))) return true
    }
  }
  return false
}

async function* textOf(bucket: Bucket, key: string): AsyncGenerator<string> {
  const found = await bucket.get(key)
  // Removed meanwhile.
  if (!found) throw new MissingObject(`${key} is gone.`)
  for await (const chunk of found.body) yield chunk.toString('latin1')
}
