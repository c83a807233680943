// The artifact store on disk: blobs by content hash, and one manifest per deployment that lists them.
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'
import { type Blobs, createBlobs, type Encoding, mostBufferedBytes, place, type StoredFile } from './blobs.ts'
import { syncFileSystems, syncPath, syncPaths, syncTree } from './durable.ts'
import { removeTree } from './remove-tree.ts'

export type { Encoding, StoredFile } from './blobs.ts'

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

export type Artifacts = Omit<Blobs, 'load'> & {
  /** Larger files are streamed to disk instead of buffered. */
  readonly mostBufferedBytes: number
  /** Its parts; `damaged` has an entry for each file that is known to be damaged and not yet repaired. */
  readonly folders: Record<'files' | 'manifests' | 'servers' | 'damaged', string>
  /** The verified content of a blob that fits into memory. Reports one that is missing or damaged, and rejects. */
  load(hash: string, encoding?: Encoding): Promise<Buffer>
  /** Makes the files of the manifest durable, then writes it, atomically and durably. Rejects if one of them is gone. */
  publish(deploymentId: string, manifest: Manifest): Promise<void>
  /** Null if it is missing or damaged. */
  read(deploymentId: string): Promise<Manifest | null>
  /** Removes a deployment; its files stay, because others may share them. */
  remove(deploymentId: string): Promise<void>
  /** Directory of the tree of a server project. */
  serverDirectory(deploymentId: string): string
  /** The same, once the tree is on this machine. */
  serverTree(deploymentId: string): Promise<string>
  /** Notes that a blob, or the manifest of a deployment, is missing or damaged: it will be repaired. */
  report(name: string): Promise<void>
  damaged(): Promise<string[]>
}

const statsAtOnce = 16

export function createArtifacts(root: string, log?: Logger): Artifacts {
  const folders = {
    files: join(root, 'files'),
    manifests: join(root, 'manifests'),
    servers: join(root, 'servers'),
    damaged: join(root, 'damaged'),
  }
  const blobs = createBlobs(folders.files, (file) =>
    log?.warn({ file }, 'a stored file was damaged; the build that has its content writes it anew'),
  )
  const { pathOf } = blobs
  const manifestPath = (deploymentId: string) => join(folders.manifests, `${deploymentId}.json`)

  /** The paths of all blobs, each with its size. */
  function blobsOf({ files }: Manifest): Map<string, number> {
    const found = new Map<string, number>()
    for (const { hash, size, br, gzip } of Object.values(files)) {
      found.set(pathOf(hash), size)
      if (br !== undefined) found.set(pathOf(hash, 'br'), br)
      if (gzip !== undefined) found.set(pathOf(hash, 'gzip'), gzip)
    }
    return found
  }

  async function makeDurable(manifest: Manifest, found: Map<string, number>, deploymentId: string): Promise<void> {
    if (manifest.kind === 'static') {
      const directories = [...found.keys()].map(dirname)
      return syncPaths([...found.keys(), ...directories, folders.files], [folders.files])
    }
    if (!(await syncFileSystems([folders.servers]))) await syncTree(join(folders.servers, deploymentId))
    await syncPath(folders.servers)
  }

  /** A sweep that took one of them for unused, because this build took longer than any may, is noticed here. */
  async function requireAll(found: Map<string, number>): Promise<void> {
    const left = [...found]
    const next = async () => {
      for (let one = left.pop(); one; one = left.pop()) {
        const size = (await stat(one[0]).catch(() => null))?.size
        if (size !== one[1]) throw new Error('a file of the deployment is gone from the store')
      }
    }
    await Promise.all(Array.from({ length: statsAtOnce }, next))
  }

  async function report(name: string): Promise<void> {
    try {
      await mkdir(folders.damaged, { recursive: true })
      await writeFile(join(folders.damaged, name), '', { flag: 'wx' })
      log?.error({ file: name }, 'a stored file is missing or damaged')
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== 'EEXIST')
        log?.error({ err, file: name }, 'a damaged file was not noted')
    }
  }

  return {
    ...blobs,
    mostBufferedBytes,
    folders,
    async load(hash, encoding) {
      const content = await blobs.load(hash, encoding)
      if (content) return content
      const name = encoding ? `${hash}.${encoding}` : hash
      await report(name)
      throw new Error(`${name} is missing or damaged`)
    },
    async publish(deploymentId, manifest) {
      const found = blobsOf(manifest)
      await makeDurable(manifest, found, deploymentId)
      await place(manifestPath(deploymentId), async (aside) => {
        await writeFile(aside, JSON.stringify(manifest))
        await syncPath(aside)
      })
      await syncPath(folders.manifests)
      await requireAll(found)
    },
    async read(deploymentId) {
      const text = await readFile(manifestPath(deploymentId), 'utf8').catch(() => '')
      try {
        return JSON.parse(text) as Manifest
      } catch {
        return null
      }
    },
    async remove(deploymentId) {
      await rm(manifestPath(deploymentId), { force: true })
      const directory = join(folders.servers, deploymentId)
      // The second is a partial tree of a worker that died.
      await Promise.all([removeTree(directory), removeTree(`${directory}.new`)])
    },
    serverDirectory: (deploymentId) => join(folders.servers, deploymentId),
    serverTree: async (deploymentId) => join(folders.servers, deploymentId),
    report,
    damaged: () => readdir(folders.damaged).catch(() => []),
  }
}
