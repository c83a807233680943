// The manifests of a bucket, and copies of them on this machine. Each copy has a digest, because disks lose data too.
import { hash as hashOf } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Manifest, StoredFile } from '../artifacts.ts'
import type { Folders } from '../local-inventory.ts'
import { type Bucket, readAll } from './client.ts'
import type { DiskCache } from './disk-cache.ts'
import { contentOf } from './objects.ts'

export type Manifests = ReturnType<typeof createManifests>

const maxBytes = 64 << 20

export function createManifests({ bucket, cache, folders }: { bucket: Bucket; cache: DiskCache; folders: Folders }) {
  const keyOf = (deploymentId: string) => `manifests/${deploymentId}.json`
  const pathOf = (deploymentId: string) => join(folders.manifests, `${deploymentId}.json`)
  const drop = (deploymentId: string) => rm(pathOf(deploymentId), { force: true })

  async function readCopy(deploymentId: string): Promise<Manifest | null> {
    const copy = await readFile(pathOf(deploymentId), 'utf8').catch(() => '')
    const text = copy.slice(65)
    if (copy.slice(0, 64) !== hashOf('sha256', text)) return null
    cache.used(pathOf(deploymentId))
    return parse(text)
  }

  /** Null if the bucket has no manifest, or a damaged one. */
  async function fetch(deploymentId: string): Promise<Manifest | null> {
    const found = await bucket.get(keyOf(deploymentId))
    const text = found && (await readAll(found.body, maxBytes))
    if (text === null || (found!.sha256 ?? hashOf('sha256', text)) !== hashOf('sha256', text)) return null
    const manifest = parse(text)
    if (!manifest) return null
    const copy = `${hashOf('sha256', text)}\n${text}`
    // Without the copy, it is fetched again.
    await cache
      .put(pathOf(deploymentId), copy.length, (temporaryPath) => writeFile(temporaryPath, copy))
      .catch(() => {})
    return manifest
  }

  return {
    keyOf,
    drop,
    readCopy,
    async read(deploymentId: string, fresh: boolean): Promise<Manifest | null> {
      const copy = fresh ? null : await readCopy(deploymentId)
      return copy ?? fetch(deploymentId)
    },
    async write(deploymentId: string, manifest: Manifest): Promise<void> {
      await bucket.put(keyOf(deploymentId), contentOf(Buffer.from(JSON.stringify(manifest))))
      await drop(deploymentId)
    },
  }
}

function parse(text: string): Manifest | null {
  try {
    const found = JSON.parse(text)
    return isManifest(found) ? found : null
  } catch {
    return null
  }
}

/** Hashes and the root become paths on this machine, and others may write to the bucket. */
function isManifest(found: Manifest): boolean {
  const { kind, files, root = '', node = '24', manager, tree } = found
  if (kind !== 'static' && kind !== 'node') return false
  if (!['20', '22', '24'].includes(node)) return false
  if (manager && !['npm', 'pnpm', 'yarn', 'bun'].includes(manager.name)) return false
  if (root.startsWith('/') || root.split('/').includes('..')) return false
  return [...Object.values(files), ...(tree ? [tree] : [])].every(isStored)
}

function isStored({ hash, size, br = 0, gzip = 0 }: StoredFile): boolean {
  return /^[0-9a-f]{64}$/.test(hash) && [size, br, gzip].every((bytes) => Number.isSafeInteger(bytes) && bytes >= 0)
}
