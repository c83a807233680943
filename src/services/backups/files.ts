// The files of a backup: what the deployments of the snapshot are served from, and the small files of the data directory.
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Artifacts, type Encoding, type Manifest, StoreUnavailable } from '../../platform/artifacts/artifacts.ts'
import { chunksOf, fileEntry, readTree, type TreeEntry } from '../../platform/artifacts/trees.ts'

/** Notes what is missing or damaged; the backup goes on without it. */
export type Note = (what: string, why: string) => void

const encodings = [undefined, 'br', 'gzip'] as const

/** Of the data directory itself; the second is the mode it is restored with. */
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

/** The hash as 32 characters instead of 64: these are the only things in memory that grow with what is stored. */
const shortOf = (hash: string) => Buffer.from(hash, 'hex').toString('latin1')

/** What deployments are made from, by the short form of the hash: its size. */
export type Contents = Map<string, number>

/** Reads, in pages, what was uploaded; `read` is asked for what comes behind the given hash. */
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

/** The blobs, the manifest and the tree of each deployment, and what was uploaded; a blob that several need is packed once. */
export async function* readArtifacts(
  artifacts: Artifacts,
  ids: readonly string[],
  uploaded: Contents,
  note: Note,
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
      note(id, 'its manifest is missing or damaged')
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
        // What a process of ours does to the tree is excluded by the lock; this is somebody else, or the disk.
        faults.add(`its tree cannot be read (${(error as Error).message})`)
      }
    }
    for (const fault of faults) note(id, fault)
    yield manifestOf(id, manifest)
  }
  for (const [short, size] of uploaded) {
    const hash = Buffer.from(short, 'latin1').toString('hex')
    if (!packed.has(short)) yield* readBlob(hash, size)
    const fault = damaged.get(blobEntry(hash))
    if (fault) note('what was uploaded', fault)
  }
}

/** Without the archive of its tree, which only some stores have: the tree itself is packed. */
function manifestOf(id: string, { tree: _, ...manifest }: Manifest): TreeEntry {
  const content = Buffer.from(JSON.stringify(manifest))
  return { kind: 'file', path: manifestEntry(id), mode: 0o644, size: content.length, content: [content] }
}

/** What is wrong with a blob, if anything is; a compressed copy has no hash to be held to. */
async function faultOf(file: FileHandle, size: number, hash: string | undefined): Promise<string | null> {
  if ((await file.stat()).size !== size) return 'has another size'
  if (hash === undefined) return null
  const digest = createHash('sha256')
  for await (const chunk of chunksOf(file, size)) digest.update(chunk)
  return digest.digest('hex') === hash ? null : 'is damaged'
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}
