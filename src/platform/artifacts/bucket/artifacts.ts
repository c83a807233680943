// The artifact store in a bucket, for any number of machines. Each machine caches what it uses in its own directory.
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { removeTree } from '../../files/remove-tree.ts'
import { type Artifacts, type Manifest, type StoredFile, StoreUnavailable } from '../artifacts.ts'
import { blobName, compressedCopies, decompress, type Encoding, isCompressible, maxBufferedBytes } from '../blobs.ts'
import { foldersIn, manifestName } from '../local-inventory.ts'
import { packTree } from '../trees.ts'
import { type Bucket, type ObjectInfo, readAll } from './client.ts'
import { createDiskCache } from './disk-cache.ts'
import { createBucketInventory, requireNoRemoval } from './inventory.ts'
import { createManifests } from './manifests.ts'
import { blobKey, contentOf, createObjects, nameOf } from './objects.ts'
import { createTrees } from './trees.ts'

export type BucketArtifactsOptions = {
  bucket: Bucket
  /** Where this machine keeps its copies. */
  root: string
  cacheBytes: number
  log?: Logger | undefined
}

const storesAtOnce = 24
const headsAtOnce = 32
// Older objects are stored again, which makes them young: the sweep keeps objects for at least this long.
const reuseMs = 7 * 24 * 3600_000
const reportAgainMs = 60_000

export function createBucketArtifacts({ bucket, root, cacheBytes, log }: BucketArtifactsOptions): Artifacts {
  const folders = foldersIn(root)
  const cache = createDiskCache(folders, cacheBytes, log)
  const objects = createObjects({ bucket, cache, folders, log, onDamaged: report })
  const manifests = createManifests({ bucket, cache, folders })
  const trees = createTrees({ objects, cache, manifests, folders })
  const reported = new LRUCache<string, true>({ max: 10_000, ttl: reportAgainMs })

  const isYoung = (found: ObjectInfo | null) => found !== null && found.modifiedMs > Date.now() - reuseMs
  const has = async (hash: string, encoding: Encoding | undefined, size: number) => {
    const found = await bucket.head(blobKey(hash, encoding))
    return isYoung(found) && found!.size === size
  }

  /** Buffers the content once, for the hash, the file and its compressed copies. */
  async function storeSmall(fileName: string, content: Buffer): Promise<StoredFile> {
    const plain = contentOf(content)
    const stored = { hash: plain.sha256, size: plain.size }
    const [isThere, copies] = await Promise.all([
      has(stored.hash, undefined, stored.size),
      isCompressible(fileName, stored.size) ? compress(stored.hash, content) : {},
    ])
    if (!isThere) await objects.put(stored.hash, undefined, plain)
    return { ...stored, ...copies }
  }

  async function compress(hash: string, content: Buffer): Promise<Pick<StoredFile, 'br' | 'gzip'>> {
    const [br, gzip] = await Promise.all([bucket.head(blobKey(hash, 'br')), bucket.head(blobKey(hash, 'gzip'))])
    if (isYoung(br) && isYoung(gzip)) return { br: br!.size, gzip: gzip!.size }
    const copies = await compressedCopies(content)
    if (!copies) return {}
    await Promise.all([
      objects.put(hash, 'br', contentOf(copies.br)),
      objects.put(hash, 'gzip', contentOf(copies.gzip)),
    ])
    return { br: copies.br.length, gzip: copies.gzip.length }
  }

  /** The hash, and so the key, is only known once everything is read. */
  function storeLarge(content: Iterable<Buffer> | AsyncIterable<Buffer>, encoding?: Encoding, wanted?: string) {
    return objects.withTemporaryFile(
      async (path) => {
        const digest = createHash('sha256')
        let size = 0
        async function* hashed() {
          for await (const chunk of content) {
            digest.update(chunk)
            size += chunk.length
            yield chunk
          }
        }
        await pipeline(hashed, createWriteStream(path, { flags: 'wx' }))
        return { hash: digest.digest('hex'), size }
      },
      async (path, { hash, size }) => {
        const name = wanted ?? hash
        if (wanted !== undefined && encoding === undefined && hash !== wanted) return
        if (!(await has(name, encoding, size))) await objects.put(name, encoding, { sha256: hash, size, body: path })
      },
    )
  }

  function storeTree(directory: string): Promise<{ hash: string; size: number }> {
    return objects.withTemporaryFile(
      (path) => packTree(directory, path),
      (path, { hash, size }) => objects.put(hash, undefined, { sha256: hash, size, body: path }),
    )
  }

  /** Makes sure that all blobs exist and that no sweep is about to remove one. */
  async function requireAll({ files, tree }: Manifest): Promise<void> {
    const wanted = new Map<string, number>()
    for (const { hash, size, br, gzip } of [...Object.values(files), ...(tree ? [tree as StoredFile] : [])]) {
      wanted.set(nameOf(hash), size)
      if (br !== undefined) wanted.set(nameOf(hash, 'br'), br)
      if (gzip !== undefined) wanted.set(nameOf(hash, 'gzip'), gzip)
    }
    await requireNoRemoval(bucket, wanted)
    const left = [...wanted]
    const next = async () => {
      for (let one = left.pop(); one; one = left.pop()) {
        const [, hash, encoding] = blobName.exec(one[0]) ?? []
        const found = await bucket.head(blobKey(hash!, encoding as Encoding | undefined))
        if (found?.size !== one[1])
          throw new StoreUnavailable('A file of the deployment is gone from the artifact store.')
      }
    }
    await Promise.all(Array.from({ length: headsAtOnce }, next))
  }

  async function removeHere(deploymentId: string): Promise<void> {
    await manifests.drop(deploymentId)
    const names = await readdir(folders.servers).catch(() => [])
    const own = names.filter((name) => name === deploymentId || name.startsWith(`${deploymentId}.`))
    for (const name of own) await removeTree(join(folders.servers, name))
  }

  async function remove(deploymentId: string): Promise<void> {
    await bucket.delete(manifests.keyOf(deploymentId))
    await removeHere(deploymentId)
  }

  async function report(name: string): Promise<void> {
    if (reported.get(name)) return
    reported.set(name, true)
    const [, hash, encoding] = blobName.exec(name) ?? []
    try {
      if (hash) await objects.drop(hash, encoding as Encoding | undefined)
      else await manifests.drop(name)
      if (await bucket.head(`damaged/${name}`)) return
      await writeNote(name, '')
      log?.error({ file: name }, 'an object of the artifact store is missing or damaged')
    } catch (err) {
      log?.error({ err, file: name }, 'a damaged object was not noted')
    }
  }

  const writeNote = (name: string, text: string) => bucket.put(`damaged/${name}`, contentOf(Buffer.from(text)))

  async function repair(hash: string, encoding?: Encoding): Promise<boolean> {
    if (await objects.isWhole(hash, encoding)) return true
    const isRepaired = encoding ? await repairCopy(hash, encoding) : await repairPlain(hash)
    if (isRepaired || (await objects.isWhole(hash, encoding))) return true
    // So that the next build with this content doesn't take it for stored.
    await bucket.delete(blobKey(hash, encoding))
    return false
  }

  async function repairCopy(hash: string, encoding: Encoding): Promise<boolean> {
    const content = (await repair(hash)) ? await objects.fetchIntact(hash) : null
    const copies = content && (await compressedCopies(content))
    if (copies) await objects.put(hash, encoding, contentOf(copies[encoding]))
    return copies !== null
  }

  async function repairPlain(hash: string): Promise<boolean> {
    for (const encoding of ['br', 'gzip'] as const) {
      const copy = await objects.fetchIntact(hash, encoding)
      if (!copy) continue
      await objects.put(hash, undefined, contentOf(await decompress(copy, encoding)))
      return true
    }
    return false
  }

  return {
    maxBufferedBytes,
    storesAtOnce,
    shared: true,
    async store(name, size, content) {
      if (size > maxBufferedBytes) return storeLarge(content)
      const chunks: Buffer[] = []
      for await (const chunk of content) chunks.push(chunk)
      return storeSmall(name, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    },
    // The bucket acknowledged them, so they are durable.
    async persist() {},
    serverDirectory: (deploymentId) => join(folders.servers, deploymentId),
    async publish(deploymentId, given) {
      const directory = join(folders.servers, deploymentId)
      const manifest = given.kind === 'node' ? { ...given, tree: await storeTree(directory) } : given
      await requireAll(manifest)
      await manifests.write(deploymentId, manifest)
      if (manifest.kind === 'node') await trees.adopt(deploymentId, manifest, directory)
    },
    remove,
    read: (deploymentId, options) => manifests.read(deploymentId, options?.fresh ?? false),
    load: objects.load,
    open: objects.open,
    openTree: trees.open,
    isWhole: objects.isWhole,
    repair,
    report,
    async damaged() {
      const names: string[] = []
      for await (const page of bucket.list('damaged/'))
        names.push(...page.map(({ key }) => key.slice('damaged/'.length)))
      return names.filter((name) => blobName.test(name) || manifestName.test(`${name}.json`))
    },
    async readNote(name) {
      const found = await bucket.get(`damaged/${name}`)
      return found ? readAll(found.body, 1000) : ''
    },
    writeNote,
    clearReport: (name) => bucket.delete(`damaged/${name}`),
    inventory: createBucketInventory({ bucket, folders, manifests, remove, reuseMs }),
    async putBlob(hash, encoding, content) {
      const { hash: own } = await storeLarge(content, encoding, hash)
      return encoding !== undefined || own === hash
    },
    async putManifest(deploymentId, given) {
      const directory = join(folders.servers, deploymentId)
      const manifest: Manifest = { ...given }
      delete manifest.tree
      if (given.kind === 'node') {
        const tree = await storeTree(directory).catch((error) => {
          // The deployment was incomplete.
          if (error.code !== 'ENOENT') throw error
        })
        if (tree) manifest.tree = tree
        await removeTree(directory)
      }
      await manifests.write(deploymentId, manifest)
    },
    readiness: bucket.readiness,
    close() {
      cache.close()
      bucket.close()
    },
  }
}
