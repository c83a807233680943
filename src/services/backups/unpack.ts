// Writes the files of an archive into an empty data directory. Only known paths are valid: the archive may be hostile.
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Artifacts, Encoding, Manifest } from '../../platform/artifacts/artifacts.ts'
import { BadArchive } from '../../platform/files/tar.ts'
import { type BackupEntry, parseJson } from './archive.ts'
import { blobEntry, manifestEntry, plainFiles } from './files.ts'

type FileEntry = Extract<BackupEntry, { kind: 'file' }>

const blob = /^artifacts\/files\/[0-9a-f]{2}\/([0-9a-f]{64})(?:\.(br|gzip))?$/
const manifest = /^artifacts\/manifests\/(dpl_[0-9a-z]{24})\.json$/
const server = /^artifacts\/servers\/(dpl_[0-9a-z]{24})((?:\/.*)?)$/s
const maxManifestBytes = 64 << 20

/** The edge opens every file that a manifest names, so it may name only blobs. */
const StoredFile = Type.Object({
  hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  size: Type.Integer({ minimum: 0 }),
  br: Type.Optional(Type.Integer({ minimum: 0 })),
  gzip: Type.Optional(Type.Integer({ minimum: 0 })),
})
const SafeManifest = Type.Object({
  version: Type.Integer(),
  kind: Type.Union([Type.Literal('static'), Type.Literal('node')]),
  root: Type.Optional(Type.String({ pattern: '^(?!/)(?!(.*/)?\\.\\.(/|$))' })),
  manager: Type.Optional(
    Type.Object({
      name: Type.Union([Type.Literal('npm'), Type.Literal('pnpm'), Type.Literal('yarn'), Type.Literal('bun')]),
      version: Type.String({ pattern: '^[0-9A-Za-z.-]{1,80}$' }),
    }),
  ),
  node: Type.Optional(Type.Union([Type.Literal('20'), Type.Literal('22'), Type.Literal('24')])),
  files: Type.Record(Type.String(), StoredFile),
  spaFallback: Type.Boolean(),
  cleanUrls: Type.Boolean(),
})

export function createUnpacker(dataDir: string, artifacts: Artifacts): (entry: BackupEntry) => Promise<void> {
  /** Directories created in the current tree. Entries go only into these, so never through a link. */
  let created = new Set<string>()

  async function writeBlob(entry: FileEntry, hash: string, encoding: Encoding | undefined): Promise<void> {
    if (!(await artifacts.putBlob(hash, encoding, entry.content))) throw new BadArchive(`${entry.path} is damaged.`)
  }

  async function writeManifest(entry: FileEntry, deploymentId: string): Promise<void> {
    if (entry.size > maxManifestBytes) throw unknown(entry)
    const chunks: Buffer[] = []
    for await (const chunk of entry.content) chunks.push(chunk)
    const manifest = parseJson(Buffer.concat(chunks))
    if (!Value.Check(SafeManifest, manifest)) throw new BadArchive(`${entry.path} is not a manifest.`)
    await artifacts.putManifest(deploymentId, manifest as Manifest)
  }

  async function writeTree(entry: BackupEntry, deploymentId: string, below: string): Promise<void> {
    const path = artifacts.serverDirectory(deploymentId) + below
    if (below === '' && entry.kind === 'directory') {
      await mkdir(dirname(path), { recursive: true })
      created = new Set()
    } else if (!created.has(dirname(path))) throw unknown(entry)
    if (entry.kind === 'link') return symlink(entry.target, path)
    if (entry.kind === 'file') {
      return writeFile(path, entry.content, { flag: 'wx', mode: entry.mode & 0o100 ? 0o755 : 0o644 })
    }
    await mkdir(path, { mode: 0o755 })
    created.add(path)
  }

  async function write(entry: BackupEntry): Promise<void> {
    const [, tree, below] = server.exec(entry.path) ?? []
    if (tree !== undefined) return writeTree(entry, tree, below!)
    if (entry.kind !== 'file') throw unknown(entry)
    const [, hash, encoding] = blob.exec(entry.path) ?? []
    if (hash && entry.path === blobEntry(hash, encoding as Encoding))
      return writeBlob(entry, hash, encoding as Encoding)
    const [, deploymentId] = manifest.exec(entry.path) ?? []
    if (deploymentId && entry.path === manifestEntry(deploymentId)) return writeManifest(entry, deploymentId)
    const plain = plainFiles.find(([path]) => path === entry.path)
    if (!plain) throw unknown(entry)
    await writeFile(join(dataDir, plain[0]), entry.content, { flag: 'wx', mode: plain[1] })
  }

  return async (entry) => {
    try {
      await write(entry)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new BadArchive(`${entry.path} appears twice.`)
      throw error
    }
  }
}

const unknown = ({ path }: { path: string }) =>
  new BadArchive(`The archive has ${path.slice(0, 200)}, which no backup has.`)
