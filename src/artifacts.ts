// What deployments serve, on disk: files by the hash of their content, and one manifest per deployment that names them.
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
  /** Sizes of the compressed twins, where compressing was worth it. */
  br?: number
  gzip?: number
}

export type Manifest = {
  version: 1
  /** A static site, or a server to be started from its own directory. */
  kind: 'static' | 'node'
  /** Where in its directory a server is started. */
  root?: string
  /** By path, without a leading slash. */
  files: Record<string, StoredFile>
  /** As they were when it was built: what a deployment answers never changes. */
  spaFallback: boolean
  cleanUrls: boolean
}

export type Encoding = 'br' | 'gzip'

export type Artifacts = {
  /**
   * Takes the content of a file; one that is there already is not written again. The name tells whether compressing is
   * worth it.
   */
  store(name: string, size: number, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<StoredFile>
  /** What is larger is written as it comes, without being held in memory. */
  readonly mostBufferedBytes: number
  pathOf(hash: string, encoding?: Encoding): string
  /** Makes the manifest visible, whole or not at all. */
  publish(deploymentId: string, manifest: Manifest): Promise<void>
  read(deploymentId: string): Promise<Manifest | null>
  /** Forgets a deployment; its files stay for others that share them. */
  remove(deploymentId: string): Promise<void>
  /** Where the tree of a server project lives. */
  serverDirectory(deploymentId: string): string
}

const compressible = new Set(
  '.html .htm .css .js .mjs .cjs .json .map .svg .txt .xml .md .csv .ico .wasm .webmanifest .ttf .otf .eot'.split(' '),
)
// Below this a compressed answer saves no packet; above the other neither the time nor the memory is worth it.
const leastCompressedBytes = 860
const mostCompressedBytes = 10 << 20
const smallBytes = 256 << 10

const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

export function createArtifacts(root: string): Artifacts {
  const pathOf = (name: string, encoding?: Encoding) =>
    join(root, 'files', name.slice(0, 2), encoding ? `${name}.${encoding}` : name)
  const manifestPath = (deploymentId: string) => join(root, 'manifests', `${deploymentId}.json`)

  // Written aside and renamed: a reader sees a whole file or none, and a crash leaves no half of one.
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
      [constants.BROTLI_PARAM_QUALITY]: length <= smallBytes ? 8 : 5,
      [constants.BROTLI_PARAM_SIZE_HINT]: length,
      // The usual window is 4 MB, and setting it up takes longer than compressing a page.
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

  /** What fits into memory is there once, for its hash, its copy and its compressed twins. */
  async function storeSmall(fileName: string, content: Buffer): Promise<StoredFile> {
    const digest = hash('sha256', content)
    const target = pathOf(digest)
    if ((await sizeOf(target)) === undefined) await place(target, (aside) => writeFile(aside, content))
    return { hash: digest, size: content.length, ...(await compress(fileName, digest, content)) }
  }

  /** The hash is known when all of it is written. */
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
      // The second is what a worker was laying out when it died.
      await Promise.all([removeTree(directory), removeTree(`${directory}.new`)])
    },
    serverDirectory: (deploymentId) => join(root, 'servers', deploymentId),
  }
}
