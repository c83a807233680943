// Reads file bodies: small files come from a bounded memory cache, large ones from disk.
import type { FileHandle } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import type { Variant } from './variants.ts'

export type Bodies = {
  /** The bytes if they are in memory; the hot path. */
  get(variant: Variant): Buffer | undefined
  /** Reads a small file and caches it. */
  load(variant: Variant): Promise<Buffer>
  open(variant: Variant): Promise<FileHandle>
  /** Requests the repair of a file that can't be opened or whose size differs from its manifest. */
  report(variant: Variant): Promise<void>
}

/** Typical bundles fit when compressed. The cache of 32 MiB holds at least 128 files of this size. */
export const maxInMemory = 256 << 10
const maxBytes = 32 << 20

export function createBodies(artifacts: Artifacts): Bodies {
  const cache = new LRUCache<string, Buffer>({ max: 50_000, maxSize: maxBytes })
  const loading = new Map<string, Promise<Buffer>>()
  const encodingOf = ({ encoding }: Variant) => (encoding === 'identity' ? undefined : encoding)

  async function read(variant: Variant): Promise<Buffer> {
    // `load` verifies the bytes: otherwise a damaged body would stay cached after its file is repaired.
    const body = await artifacts.load(variant.hash, encodingOf(variant))
    // Content-Length comes from the manifest. A body of another size would be cut off or break the connection.
    if (body.length !== variant.size) throw new Error(`${variant.key} has ${body.length} bytes, not ${variant.size}`)
    // Includes the overhead of an entry, so empty files count too.
    cache.set(variant.key, body, { size: body.length + 256 })
    return body
  }

  return {
    get: (variant) => cache.get(variant.key),
    load(variant) {
      // Concurrent requests for the same file share one read.
      let body = loading.get(variant.key)
      if (!body) {
        body = read(variant).finally(() => loading.delete(variant.key))
        loading.set(variant.key, body)
      }
      return body
    },
    open: (variant) => artifacts.open(variant.hash, encodingOf(variant)),
    report: (variant) => artifacts.report(variant.key),
  }
}
