// The artifact store on disk: files by content hash, and one manifest per deployment that lists them.
import { createHash, hash, randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { removeTree } from './remove-tree.ts'

export type StoredFile = {
  /** SHA-256 of the content, in hexadecimal: its name in the store, and its ETag. */
  hash: string
  size: number
  /** Sizes of the compressed copies, if compression is worthwhile. */
  br?: number
  gzip?: number
}

export type Manifest = {
  version: 1
  /** A static site, or a server to be started from its own directory. */
  kind: 'static' | 'node'
  /** Working directory of a server within its tree. */
  root?: string
  /** By path, without a leading slash. */
  files: Record<string, StoredFile>
  /** The settings at build time: the responses of a deployment never change. */
  spaFallback: boolean
  cleanUrls: boolean
}

export type Encoding = 'br' | 'gzip'

export type Artifacts = {
  /**
   * Stores the content of a file unless it is already stored. The name's extension decides whether it is compressed.
   */
  store(name: string, size: number, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<StoredFile>
  /** Larger files are streamed to disk instead of buffered. */
  readonly mostBufferedBytes: number
  pathOf(hash: string, encoding?: Encoding): string
  /** Writes the manifest atomically. */
  publish(deploymentId: string, manifest: Manifest): Promise<void>
  read(deploymentId: string): Promise<Manifest | null>
  /** Removes a deployment; its files stay, because others may share them. */
  remove(deploymentId: string): Promise<void>
  /** Directory of the tree of a server project. */
  serverDirectory(deploymentId: string): string
}

const compressible = new Set(
  '.html .htm .css .js .mjs .cjs .json .map .svg .txt .xml .md .csv .ico .wasm .webmanifest .ttf .otf .eot'.split(' '),
)
// Below the first, compression saves no packet; above the second, it takes too much time and memory.
const leastCompressedBytes = 860
const mostCompressedBytes = 10 << 20
const smallBytes = 256 << 10

const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

export function createArtifacts(root: string): Artifacts {
  const pathOf = (name: string, encoding?: Encoding) =>
    join(root, 'files', name.slice(0, 2), encoding ? `${name}.${encoding}` : name)
  const manifestPath = (deploymentId: string) => join(root, 'manifests', `${deploymentId}.json`)

  // Written to a temporary file and renamed, so that readers and crashes never see a partial file.
  async function place(path: string, write: (aside: string) => Promise<unknown>): Promise<void> {
    const aside = `${path}.${randomBytes(6).toString('hex')}.new`
    await write(aside).catch(async (error) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      await mkdir(dirname(path), { recursive: true })
      await write(aside)
    })
    await rename(aside, path)
  }

  const sizeOf = async (path: string) => (await stat(path).catch(() => null))?.size

  async function compress(fileName: string, name: string, content: Buffer): Promise<Pick<StoredFile, 'br' | 'gzip'>> {
    const { length } = content
    if (!compressible.has(extname(fileName).toLowerCase()) || length < leastCompressedBytes) return {}
    const [br, gz] = await Promise.all([sizeOf(pathOf(name, 'br')), sizeOf(pathOf(name, 'gzip'))])
    if (br !== undefined && gz !== undefined) return { br, gzip: gz }
    const params = {
      [constants.BROTLI_PARAM_QUALITY]: length <= smallBytes ? 6 : 5,
      [constants.BROTLI_PARAM_SIZE_HINT]: length,
      // The default window is 4 MB, and its setup takes longer than compressing a page.
      [constants.BROTLI_PARAM_LGWIN]: Math.min(22, Math.max(10, Math.ceil(Math.log2(length)))),
    }
    const [made, zipped] = await Promise.all([
      brotli(content, { params, chunkSize: Math.max(length, 1024) }),
      zip(content),
    ])
    if (made.length >= length * 0.95) return {}
    await Promise.all([
      place(pathOf(name, 'br'), (aside) => writeFile(aside, made)),
      place(pathOf(name, 'gzip'), (aside) => writeFile(aside, zipped)),
    ])
    return { br: made.length, gzip: zipped.length }
  }

  /** Buffers the content once for its hash, its copy and its compressed copies. */
  async function storeSmall(fileName: string, content: Buffer): Promise<StoredFile> {
    const digest = hash('sha256', content)
    const target = pathOf(digest)
    if ((await sizeOf(target)) === undefined) await place(target, (aside) => writeFile(aside, content))
    return { hash: digest, size: content.length, ...(await compress(fileName, digest, content)) }
  }

  /** The hash is known only after everything is written. */
  async function storeLarge(size: number, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<StoredFile> {
    const digest = createHash('sha256')
    const aside = join(root, 'files', `${randomBytes(12).toString('hex')}.new`)
    async function* hashed() {
      for await (const chunk of content) {
        digest.update(chunk)
        yield chunk
      }
    }
    await mkdir(dirname(aside), { recursive: true })
    try {
      await pipeline(hashed, createWriteStream(aside, { flags: 'wx' }))
      const name = digest.digest('hex')
      const target = pathOf(name)
      if ((await sizeOf(target)) === undefined) {
        await mkdir(dirname(target), { recursive: true })
        await rename(aside, target)
      }
      return { hash: name, size }
    } finally {
      await rm(aside, { force: true })
    }
  }

  return {
    pathOf,
    mostBufferedBytes: mostCompressedBytes,
    async store(name, size, content) {
      if (size > mostCompressedBytes) return storeLarge(size, content)
      const chunks: Buffer[] = []
      for await (const chunk of content) chunks.push(chunk)
      return storeSmall(name, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    },
    publish: (deploymentId, manifest) =>
      place(manifestPath(deploymentId), (aside) => writeFile(aside, JSON.stringify(manifest))),
    async read(deploymentId) {
      const text = await readFile(manifestPath(deploymentId), 'utf8').catch(() => null)
      return text === null ? null : (JSON.parse(text) as Manifest)
    },
    async remove(deploymentId) {
      await rm(manifestPath(deploymentId), { force: true })
      const directory = join(root, 'servers', deploymentId)
      // The second is a partial tree of a worker that died.
      await Promise.all([removeTree(directory), removeTree(`${directory}.new`)])
    },
    serverDirectory: (deploymentId) => join(root, 'servers', deploymentId),
  }
}
