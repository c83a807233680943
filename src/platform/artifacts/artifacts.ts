// The artifact store: blobs named by their hash, a manifest per deployment that lists them, and server trees. A directory
// (local-artifacts.ts) and a bucket (bucket/artifacts.ts) implement it.
import type { FileHandle } from 'node:fs/promises'
import type { Encoding, StoredFile } from './blobs.ts'

export type { Encoding, StoredFile } from './blobs.ts'

export type Manifest = {
  version: 1
  /** A static site, or a server started from its own directory. */
  kind: 'static' | 'node'
  /** The server's working directory within its tree. */
  root?: string
  /** Major version of Node that the server was built with; without it, the machine's Node is used. */
  node?: '20' | '22' | '24'
  /** The package manager that the server was built with, for its start script; without it, the machine's npm is used. */
  manager?: { name: 'npm' | 'pnpm' | 'yarn' | 'bun'; version: string }
  /** Keyed by path, without a leading slash. */
  files: Record<string, StoredFile>
  /** Whether detection found a single-page app. The project's setting overrides this when the site is served. */
  spaFallback: boolean
  /** The project's setting at build time, for an edge that doesn't have the current one. */
  cleanUrls: boolean
  /** The blob with the archive of a server's tree, if the store isn't the disk that servers run from. */
  tree?: { hash: string; size: number }
}

/** The page of a single-page app. Generators that also write a home page give it another name. */
export const appPages = ['200.html', '__spa-fallback.html', 'index.html'] as const

/** The size of a site. Content at several paths counts once. */
export function bytesOf(files: Manifest['files']): number {
  const sizes = new Map(Object.values(files).map(({ hash, size }) => [hash, size]))
  return [...sizes.values()].reduce((sum, size) => sum + size, 0)
}

/** The store doesn't respond, refuses the request, or sends something invalid: we don't know what it contains. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}

/** The store responded: the object is missing, or its content doesn't match its name. */
export class MissingObject extends StoreUnavailable {
  override name = 'MissingObject'
  /** Like a missing file. */
  readonly code = 'ENOENT'
}

export type Tree = {
  directory: string
  /** The server's working directory within the tree. */
  root: string
  node?: Manifest['node']
  manager?: Manifest['manager']
  /** Allows the tree to be removed. */
  release(): void
}

/** A part of a deployment that may remain after the deployment is deleted. */
export type Remnant = {
  name: string
  id: string
  /** Null if it no longer exists. */
  usedAt(): Promise<number | null>
}

/** A folder of remnants, one per deployment. */
export type RemnantFolder = {
  name: string
  /** Whether all machines share it. */
  shared: boolean
  list(): AsyncIterable<Remnant>
  remove(remnant: Remnant): Promise<void>
}

/** What the store contains, for the sweep that removes unused blobs and the scrub that finds damaged ones. Blobs are in folders 0 to 255. */
export type Inventory = {
  /** The text arrives in chunks. */
  manifests(): AsyncIterable<{ id: string; text(): AsyncIterable<string> }>
  remnants: RemnantFolder[]
  blobs(folder: number): AsyncIterable<{ name: string; size: number }>
  has(name: string): Promise<boolean>
  /** Batches of names of blobs that aren't needed and weren't used since `usedBefore`. */
  unused(folder: number, isNeeded: (hash: string) => boolean, usedBefore: number): AsyncIterable<string[]>
  /** Removes those that no build has started to use in the meantime. */
  removeUnused(names: string[], usedBefore: number): Promise<{ files: number; bytes: number }>
  /** Removes temporary files of processes that died. */
  tidy(usedBefore: number): Promise<void>
  /** A short text that the scrub keeps between runs; empty at first. */
  readMark(): Promise<string>
  writeMark(text: string): Promise<void>
}

export type Artifacts = {
  /** Larger files are streamed to disk instead of buffered. */
  readonly maxBufferedBytes: number
  /** How many small files to store concurrently. */
  readonly storesAtOnce: number
  /** Whether all machines share one store. */
  readonly shared: boolean
  /** Stores a file unless an undamaged copy exists. The extension of its name decides whether it is compressed. */
  store(name: string, size: number, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<StoredFile>
  /** Finds content that is already stored, without reading it; null if that requires reading it. */
  findStored?(name: string, hash: string, size: number): Promise<StoredFile | null>
  /** Makes blobs durable before a manifest names them. */
  persist(hashes: readonly string[]): Promise<void>
  /** Where a build puts the tree of a server before publishing it. */
  serverDirectory(deploymentId: string): string
  /** Makes the files of the manifest durable, then writes it atomically and durably. Rejects if a file is missing. */
  publish(deploymentId: string, manifest: Manifest): Promise<void>
  /** Removes a deployment. Its files stay, because other deployments may share them. */
  remove(deploymentId: string): Promise<void>

  /** Null if the manifest is missing or damaged. May return a cached copy, unless `fresh` is set. */
  read(deploymentId: string, options?: { fresh: boolean }): Promise<Manifest | null>
  /** The verified content of a blob that fits into memory. Reports a missing or damaged blob, and rejects. */
  load(hash: string, encoding?: Encoding): Promise<Buffer>
  /** Opens a blob as a file on this machine. */
  open(hash: string, encoding?: Encoding): Promise<FileHandle>
  /** The tree of a published server on this machine. It stays until released. */
  openTree(deploymentId: string): Promise<Tree>

  /** Whether the blob exists and its content matches its name. */
  isWhole(hash: string, encoding?: Encoding): Promise<boolean>
  /** Restores a missing or damaged blob from its other copies, durably. Returns whether it is intact now. */
  repair(hash: string, encoding?: Encoding): Promise<boolean>
  /** Records that a blob, or the manifest of a deployment, is missing or damaged, so that it gets repaired. */
  report(name: string): Promise<void>
  /** What was reported and isn't repaired yet. */
  damaged(): Promise<string[]>
  /** The note of a report: empty, or the time of the last repair attempt. */
  readNote(name: string): Promise<string>
  writeNote(name: string, text: string): Promise<void>
  /** Removes the report of something that was repaired or isn't needed. */
  clearReport(name: string): Promise<void>
  inventory: Inventory

  /** Stores a blob of a backup; false if its content doesn't match its name. An existing blob fails with EEXIST. */
  putBlob(hash: string, encoding: Encoding | undefined, content: AsyncIterable<Buffer>): Promise<boolean>
  /** Writes a manifest of a backup, even if its deployment is incomplete. Its tree is in `serverDirectory`. */
  putManifest(deploymentId: string, manifest: Manifest): Promise<void>

  /** A sentence if the store can't be used. */
  readiness(): Promise<string | null>
  close(): void
}
