// The files of a backup: artifacts and sources of the deployments, and the small files of the data directory.
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Artifacts, type Encoding, type Manifest, StoreUnavailable } from '../../platform/artifacts/artifacts.ts'
import { chunksOf, fileEntry, readTree, type TreeEntry } from '../../platform/artifacts/trees.ts'

/** Records what is missing or damaged; the backup continues without it. */
export type RecordIncomplete = (what: string, why: string) => void

const encodings = [undefined, 'br', 'gzip'] as const

/** Files of the data directory itself, with the mode for restoring them. */
export const plainFiles = [
  ['ca/root.key', 0o600],
  ['ca/root.pem', 0o644],
  ['test-key', 0o600],
] as const

export const manifestEntry = (deploymentId: string) => `artifacts/manifests/${deploymentId}.json`
export const blobEntry = (hash: string, encoding?: Encoding) =>
  `artifacts/files/${hash.slice(0, 2)}/${hash}${encoding ? `.${encoding}` : ''}`
export const serverEntry = (deploymentId: string) => `artifacts/servers/${deploymentId}`

export async function* readPlainFiles(dataDir: string): AsyncGenerator<TreeEntry> {
  for (const [path, mode] of plainFiles) {
    const file = await open(join(dataDir, path)).catch(absent)
    if (file) yield* fileEntry(file, path, mode)
  }
}

/** The hash in 32 characters instead of 64, because the hashes in memory grow with the number of stored files. */
const shortOf = (hash: string) => Buffer.from(hash, 'hex').toString('latin1')

/** Sizes of uploaded contents by the short form of their hash. */
export type Contents = Map<string, number>

/** Lists uploaded contents in pages; `read` returns those after the given hash. */
export async function listUploaded(
  read: (after: string) => Promise<{ sha256: string; size: string }[]>,
): Promise<Contents> {
  const contents: Contents = new Map()
  for (let after = ''; ; ) {
    const page = await read(after)
    for (const { sha256, size } of page) contents.set(shortOf(sha256), Number(size))
    if (page.length === 0) return contents
    after = page.at(-1)!.sha256
  }
}

/** Yields the blobs, manifest and tree of each deployment, and uploaded contents. Each blob is packed once. */
export async function* readArtifacts(
  artifacts: Artifacts,
  ids: readonly string[],
  uploaded: Contents,
  recordIncomplete: RecordIncomplete,
): AsyncGenerator<TreeEntry> {
  const packed = new Set<string>()
  const damaged = new Map<string, string>()

  async function* readBlob(hash: string, size: number, encoding?: Encoding): AsyncGenerator<TreeEntry> {
    const path = blobEntry(hash, encoding)
    const file = await artifacts.open(hash, encoding).catch(absent)
    const why = file ? await faultOf(file, size, encoding ? undefined : hash) : 'is missing'
    if (file && !why) return yield* fileEntry(file, path, 0o644)
    await file?.close()
    damaged.set(path, `${path} ${why}`)
    await artifacts.report(basename(path))
  }

  for (const id of ids) {
    const manifest = await artifacts.read(id, { fresh: true })
    if (!manifest) {
      recordIncomplete(id, 'its manifest is missing or damaged')
      await artifacts.report(id)
      continue
    }
    const faults = new Set<string>()
    for (const stored of Object.values(manifest.files)) {
      for (const encoding of encodings) {
        const size = encoding ? stored[encoding] : stored.size
        if (size === undefined) continue
        const key = shortOf(stored.hash) + (encoding ?? '')
        if (!packed.has(key)) yield* readBlob(stored.hash, size, encoding)
        packed.add(key)
        const fault = damaged.get(blobEntry(stored.hash, encoding))
        if (fault) faults.add(fault)
      }
    }
    if (manifest.kind === 'node') {
      try {
        const tree = await artifacts.openTree(id)
        try {
          yield* readTree(tree.directory, serverEntry(id))
        } finally {
          tree.release()
        }
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error
        // The lock excludes our own processes, so another program or the disk caused this.
        faults.add(`its tree cannot be read (${(error as Error).message})`)
      }
    }
    for (const fault of faults) recordIncomplete(id, fault)
    yield manifestOf(id, manifest)
  }
  for (const [short, size] of uploaded) {
    const hash = Buffer.from(short, 'latin1').toString('hex')
    if (!packed.has(short)) yield* readBlob(hash, size)
    const fault = damaged.get(blobEntry(hash))
    if (fault) recordIncomplete('what was uploaded', fault)
  }
}

/** The manifest without the archive of its tree, which only some stores have. The tree itself is packed instead. */
function manifestOf(id: string, { tree: _, ...manifest }: Manifest): TreeEntry {
  const content = Buffer.from(JSON.stringify(manifest))
  return { kind: 'file', path: manifestEntry(id), mode: 0o644, size: content.length, content: [content] }
}

/** Describes the fault of a blob, or returns null. Compressed copies have no hash to compare. */
async function faultOf(file: FileHandle, size: number, hash: string | undefined): Promise<string | null> {
  if ((await file.stat()).size !== size) return 'has the wrong size'
  if (hash === undefined) return null
  const digest = createHash('sha256')
  for await (const chunk of chunksOf(file, size)) digest.update(chunk)
  return digest.digest('hex') === hash ? null : 'is damaged'
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}
