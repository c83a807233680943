// The artifact store in a directory: the default, for one machine or for several that share a file system.
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'
import { syncFileSystems, syncPath, syncPaths, syncTree } from '../files/durable.ts'
import { removeTree } from '../files/remove-tree.ts'
import { randomLabel } from '../ids.ts'
import type { Artifacts, Manifest } from './artifacts.ts'
import { type Blobs, createBlobs, maxBufferedBytes, writeAtomically } from './blobs.ts'
import { identityOf } from './known-files.ts'
import { createLocalInventory, type Folders, foldersIn } from './local-inventory.ts'

export type LocalArtifacts = Artifacts & {
  pathOf: Blobs['pathOf']
  /** `damaged` has a file for each blob or manifest that is damaged and not yet repaired. */
  readonly folders: Folders
}

const statsAtOnce = 16
const storesAtOnce = 8

export function createArtifacts(root: string, log?: Logger): LocalArtifacts {
  const folders = foldersIn(root)
  const blobs = createBlobs(folders.files, (file) =>
    log?.warn({ file }, 'a stored file was damaged; the build that has its content writes it anew'),
  )
  const { known, ...offered } = blobs
  const { pathOf } = blobs
  const manifestPath = (deploymentId: string) => join(folders.manifests, `${deploymentId}.json`)
  /** A folder per deployment, so that partial manifests of a worker that died are found. */
  const partialPath = (deploymentId: string) => join(folders.manifests, `${deploymentId}.new`)
  const removePartial = (deploymentId: string) => rm(partialPath(deploymentId), { recursive: true, force: true })

  /** The paths of all blobs of a deployment, with their sizes. */
  function blobsOf({ files }: Manifest): Map<string, number> {
    const found = new Map<string, number>()
    for (const { hash, size, br, gzip } of Object.values(files)) {
      found.set(pathOf(hash), size)
      if (br !== undefined) found.set(pathOf(hash, 'br'), br)
      if (gzip !== undefined) found.set(pathOf(hash, 'gzip'), gzip)
    }
    return found
  }

  async function syncBlobs(paths: string[]): Promise<void> {
    if (paths.length === 0) return
    await syncPaths([...paths, ...paths.map(dirname), folders.files], [folders.files])
    await Promise.all(paths.map(known.noteDurable))
  }

  async function makeDurable(manifest: Manifest, found: Map<string, number>, deploymentId: string): Promise<void> {
    if (manifest.kind === 'static') return syncBlobs([...found.keys()].filter((path) => !known.isDurable(path)))
    if (!(await syncFileSystems([folders.servers]))) await syncTree(join(folders.servers, deploymentId))
    await syncPath(folders.servers)
  }

  /**
   * Notices a blob that the sweep considered unused because this build took longer than any build may. Blobs that were
   * rewritten since they were made durable are made durable again.
   */
  async function requireAll(found: Map<string, number>): Promise<void> {
    const left = [...found]
    const anew: string[] = []
    const next = async () => {
      for (let one = left.pop(); one; one = left.pop()) {
        const now = await stat(one[0]).catch(() => null)
        if (now?.size !== one[1]) throw new Error('a file of the deployment is gone from the store')
        if (!known.isDurable(one[0], identityOf(now))) anew.push(one[0])
      }
    }
    await Promise.all(Array.from({ length: statsAtOnce }, next))
    await syncBlobs(anew)
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

  async function read(deploymentId: string): Promise<Manifest | null> {
    const text = await readFile(manifestPath(deploymentId), 'utf8').catch(() => '')
    try {
      return JSON.parse(text) as Manifest
    } catch {
      return null
    }
  }

  async function remove(deploymentId: string): Promise<void> {
    await rm(manifestPath(deploymentId), { force: true })
    await removePartial(deploymentId)
    const directory = join(folders.servers, deploymentId)
    // The second is a partial tree of a worker that died.
    await Promise.all([removeTree(directory), removeTree(`${directory}.new`)])
  }

  return {
    ...offered,
    maxBufferedBytes,
    storesAtOnce,
    shared: false,
    folders,
    async load(hash, encoding) {
      const content = await blobs.load(hash, encoding)
      if (content) return content
      const name = encoding ? `${hash}.${encoding}` : hash
      await report(name)
      throw new Error(`${name} is missing or damaged`)
    },
    async persist(hashes) {
      await syncBlobs(hashes.map((hash) => pathOf(hash)))
    },
    open: (hash, encoding) => open(pathOf(hash, encoding)),
    async openTree(deploymentId) {
      const { root = '', node, manager } = (await read(deploymentId)) ?? {}
      return { directory: join(folders.servers, deploymentId), root, node, manager, release() {} }
    },
    async publish(deploymentId, manifest) {
      const found = blobsOf(manifest)
      await makeDurable(manifest, found, deploymentId)
      const write = async (temporaryPath: string) => {
        await writeFile(temporaryPath, JSON.stringify(manifest))
        await syncPath(temporaryPath)
      }
      await writeAtomically(manifestPath(deploymentId), write, join(partialPath(deploymentId), randomLabel(12)))
      await removePartial(deploymentId)
      await syncPath(folders.manifests)
      await requireAll(found)
    },
    read,
    remove,
    serverDirectory: (deploymentId) => join(folders.servers, deploymentId),
    async repair(hash, encoding) {
      if (!(await blobs.repair(hash, encoding))) return false
      const path = pathOf(hash, encoding)
      await syncPaths([path, dirname(path)], [folders.files])
      return true
    },
    report,
    damaged: () => readdir(folders.damaged).catch(() => []),
    readNote: (name) => readFile(join(folders.damaged, name), 'utf8').catch(() => ''),
    writeNote: (name, text) => writeFile(join(folders.damaged, name), text),
    clearReport: (name) => rm(join(folders.damaged, name), { force: true }),
    inventory: createLocalInventory(folders, remove),
    async putBlob(hash, encoding, content) {
      const path = pathOf(hash, encoding)
      await mkdir(dirname(path), { recursive: true })
      const digest = createHash('sha256')
      await writeFile(path, hashed(content, digest), { flag: 'wx', mode: 0o644 })
      return encoding !== undefined || digest.digest('hex') === hash
    },
    async putManifest(deploymentId, manifest) {
      // Doesn't use `publish`, which would refuse an incomplete deployment and wait for the disk each time.
      await mkdir(folders.manifests, { recursive: true })
      await writeFile(manifestPath(deploymentId), JSON.stringify(manifest), { flag: 'wx' })
    },
    readiness: async () => null,
    close() {},
  }
}

async function* hashed(content: AsyncIterable<Buffer>, digest: { update(chunk: Buffer): unknown }) {
  for await (const chunk of content) {
    digest.update(chunk)
    yield chunk
  }
}
