// What deployments serve, on disk: files by the hash of their content, and one manifest per deployment that names them.
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access, copyFile, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

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
  /** By path, without a leading slash. */
  files: Record<string, StoredFile>
  /** As they were when it was built: what a deployment answers never changes. */
  spaFallback: boolean
  cleanUrls: boolean
}

export type Encoding = 'br' | 'gzip'

export type Artifacts = {
  /** Takes a file over; one that is there already is not written again. */
  store(path: string): Promise<StoredFile>
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
// Below this a compressed answer saves no packet; above the other the time is not worth it at publishing.
const leastCompressedBytes = 860
const mostCompressedBytes = 10 << 20
const smallBytes = 256 << 10

const brotli = promisify(brotliCompress)
const zip = promisify(gzip)

export function createArtifacts(root: string): Artifacts {
  const pathOf = (hash: string, encoding?: Encoding) =>
    join(root, 'files', hash.slice(0, 2), encoding ? `${hash}.${encoding}` : hash)
  const manifestPath = (deploymentId: string) => join(root, 'manifests', `${deploymentId}.json`)

  // Written aside and renamed: a reader sees a whole file or none, and a crash leaves no half of one.
  async function place(path: string, write: (aside: string) => Promise<unknown>): Promise<void> {
    await mkdir(dirname(path), { recursive: true })
    const aside = `${path}.${randomBytes(6).toString('hex')}.new`
    await write(aside)
    await rename(aside, path)
  }

  async function compress(path: string, hash: string, size: number): Promise<Pick<StoredFile, 'br' | 'gzip'>> {
    if (!compressible.has(extname(path).toLowerCase()) || size < leastCompressedBytes || size > mostCompressedBytes)
      return {}
    const known = async (encoding: Encoding) => (await stat(pathOf(hash, encoding)).catch(() => null))?.size
    const [br, gz] = [await known('br'), await known('gzip')]
    if (br !== undefined && gz !== undefined) return { br, gzip: gz }
    const content = await readFile(path)
    const quality = size <= smallBytes ? 9 : 5
    const made = {
      br: await brotli(content, {
        params: { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: size },
      }),
      gzip: await zip(content, { level: size <= smallBytes ? 9 : 6 }),
    }
    if (made.br.length >= size * 0.95) return {}
    for (const encoding of ['br', 'gzip'] as const) {
      await place(pathOf(hash, encoding), (aside) => writeFile(aside, made[encoding]))
    }
    return { br: made.br.length, gzip: made.gzip.length }
  }

  return {
    pathOf,
    async store(path) {
      const digest = createHash('sha256')
      await pipeline(createReadStream(path), digest)
      const hash = digest.digest('hex')
      const { size } = await stat(path)
      const target = pathOf(hash)
      const known = await access(target).then(
        () => true,
        () => false,
      )
      if (!known) await place(target, (aside) => copyFile(path, aside))
      return { hash, size, ...(await compress(path, hash, size)) }
    },
    publish: (deploymentId, manifest) =>
      place(manifestPath(deploymentId), (aside) => writeFile(aside, JSON.stringify(manifest))),
    async read(deploymentId) {
      const text = await readFile(manifestPath(deploymentId), 'utf8').catch(() => null)
      return text === null ? null : (JSON.parse(text) as Manifest)
    },
    async remove(deploymentId) {
      await rm(manifestPath(deploymentId), { force: true })
      await rm(join(root, 'servers', deploymentId), { recursive: true, force: true })
    },
    serverDirectory: (deploymentId) => join(root, 'servers', deploymentId),
  }
}
