// Reads file bodies: small requested files stay in a bounded memory cache, large ones are read from disk.
import type { FileHandle } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import type { Variant } from './variants.ts'

export type Bodies = {
  /** The bytes if they are in memory: the hot path. */
  get(variant: Variant): Buffer | undefined
  /** Reads a small file and keeps it. */
  load(variant: Variant): Promise<Buffer>
  open(variant: Variant): Promise<FileHandle>
  /** Has a file repaired that could not be opened, or has another size than its manifest says. */
  report(variant: Variant): Promise<void>
}

/** A bundle of a usual size fits in when compressed; 32 MB hold at least 128 of the largest. */
export const maxInMemory = 256 << 10
const maxBytes = 32 << 20

export function createBodies(artifacts: Artifacts): Bodies {
  const kept = new LRUCache<string, Buffer>({ max: 50_000, maxSize: maxBytes })
  const loading = new Map<string, Promise<Buffer>>()
  const encodingOf = ({ encoding }: Variant) => (encoding === 'identity' ? undefined : encoding)

  async function read(variant: Variant): Promise<Buffer> {
    // Verified, because a damaged body would stay here after its file is repaired.
    const body = await artifacts.load(variant.hash, encodingOf(variant))
    // Content-Length is fixed by the manifest: a file of another size would break the connection or be truncated.
    if (body.length !== variant.size) throw new Error(`${variant.key} has ${body.length} bytes, not ${variant.size}`)
    // Adds the overhead of an entry, so that empty files count too.
    kept.set(variant.key, body, { size: body.length + 256 })
    return body
  }

  return {
    get: (variant) => kept.get(variant.key),
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
