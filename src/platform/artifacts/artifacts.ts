// What is published: blobs by content hash, one manifest per deployment that lists them, and the trees of servers. Two
// stores have this interface: a directory (local-artifacts.ts) and a bucket (bucket/artifacts.ts).
import type { FileHandle } from 'node:fs/promises'
import type { Encoding, StoredFile } from './blobs.ts'

export type { Encoding, StoredFile } from './blobs.ts'

export type Manifest = {
  version: 1
  /** A static site, or a server to be started from its own directory. */
  kind: 'static' | 'node'
  /** Working directory of a server within its tree. */
  root?: string
  /** Major version of the Node that a server was built with; absent: that of the machine. */
  node?: '20' | '22' | '24'
  /** The package manager that a server was built with, which its start script may use; absent: npm of the machine. */
  manager?: { name: 'npm' | 'pnpm' | 'yarn' | 'bun'; version: string }
  /** By path, without a leading slash. */
  files: Record<string, StoredFile>
  /** What detection found: a single-page app. The project's setting goes before it when the site is served. */
  spaFallback: boolean
  /** The setting at build time, for an edge that does not know the project's. */
  cleanUrls: boolean
  /** The blob that is the archive of a server's tree, where the store is not the disk that servers run from. */
  tree?: { hash: string; size: number }
}

/** The page of a single-page app: generators that write a home page beside it give it a name of its own. */
export const appPages = ['200.html', '__spa-fallback.html', 'index.html'] as const

/** The size of a site: content that several paths have counts once. */
export function bytesOf(files: Manifest['files']): number {
  const sizes = new Map(Object.values(files).map(({ hash, size }) => [hash, size]))
  return [...sizes.values()].reduce((sum, size) => sum + size, 0)
}

/** The store does not answer, refuses, or answers with something else; nothing is known of what it has. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable'
}

/** The store has answered: the object is not there, or is not what its name says. */
export class MissingObject extends StoreUnavailable {
  override name = 'MissingObject'
  /** As a file that is missing. */
  readonly code = 'ENOENT'
}

export type Tree = {
  directory: string
  /** Working directory of the server within it. */
  root: string
  node?: Manifest['node']
  manager?: Manifest['manager']
  /** From now on it may be removed. */
  release(): void
}

/** Something of a deployment that may be left behind when it is gone. */
export type Remnant = { name: string; id: string /** Null if it is gone. */; usedAt(): Promise<number | null> }

/** A place with remnants, one for each deployment. */
export type RemnantFolder = {
  name: string
  /** Whether other machines have the same. */
  shared: boolean
  list(): AsyncIterable<Remnant>
  remove(remnant: Remnant): Promise<void>
}

/** What is stored, for whoever removes what nothing needs and finds what is damaged. Folders of blobs: 0 to 255. */
export type Inventory = {
  /** The text in pieces. */
  manifests(): AsyncIterable<{ id: string; text(): AsyncIterable<string> }>
  remnants: RemnantFolder[]
  blobs(folder: number): AsyncIterable<{ name: string; size: number }>
  has(name: string): Promise<boolean>
  /** Names of blobs that are not needed and were not used since, some at a time. */
  unused(folder: number, isNeeded: (hash: string) => boolean, usedBefore: number): AsyncIterable<string[]>
  /** Removes those that no build has begun to use meanwhile. */
  removeUnused(names: string[], usedBefore: number): Promise<{ files: number; bytes: number }>
  /** Removes temporary files of the dead. */
  tidy(usedBefore: number): Promise<void>
  /** A short text that the scrub keeps between its runs; empty at first. */
  readMark(): Promise<string>
  writeMark(text: string): Promise<void>
}

export type Artifacts = {
  /** Larger files are streamed to disk instead of buffered. */
  readonly maxBufferedBytes: number
  /** How many small files are best stored at once. */
  readonly storesAtOnce: number
  /** Whether all machines have the same store. */
  readonly shared: boolean
  /** Stores the content of a file unless it is there undamaged. The name's extension decides whether it is compressed. */
  store(name: string, size: number, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<StoredFile>
  /** The same for content that is stored already, and not read for it; null if that has to be looked at. */
  again?(name: string, hash: string, size: number): Promise<StoredFile | null>
  /** Makes stored blobs durable that no manifest names yet. */
  keep(hashes: readonly string[]): Promise<void>
  /** Where a build lays out the tree of a server before it is published. */
  serverDirectory(deploymentId: string): string
  /** Makes the files of the manifest durable, then writes it, atomically and durably. Rejects if one of them is gone. */
  publish(deploymentId: string, manifest: Manifest): Promise<void>
  /** Removes a deployment; its files stay, because others may share them. */
  remove(deploymentId: string): Promise<void>

  /** Null if it is missing or damaged. Unless `fresh`, a copy of an earlier time may do. */
  read(deploymentId: string, options?: { fresh: boolean }): Promise<Manifest | null>
  /** The verified content of a blob that fits into memory. Reports one that is missing or damaged, and rejects. */
  load(hash: string, encoding?: Encoding): Promise<Buffer>
  /** A blob as a file of this machine. */
  open(hash: string, encoding?: Encoding): Promise<FileHandle>
  /** The tree of a published server on this machine. It stays until it is released. */
  openTree(deploymentId: string): Promise<Tree>

  /** Whether the blob is there and its content is what its name says. */
  isWhole(hash: string, encoding?: Encoding): Promise<boolean>
  /** Writes a missing or damaged blob anew from its other copies, durably; whether it is whole now. */
  mend(hash: string, encoding?: Encoding): Promise<boolean>
  /** Notes that a blob, or the manifest of a deployment, is missing or damaged: it will be repaired. */
  report(name: string): Promise<void>
  /** What is noted as damaged, and not repaired yet. */
  damaged(): Promise<string[]>
  /** What was noted with it: empty, or the time of the last attempt to repair it. */
  noteOf(name: string): Promise<string>
  note(name: string, text: string): Promise<void>
  /** It is repaired, or not needed. */
  settle(name: string): Promise<void>
  inventory: Inventory

  /** Stores a blob of a backup; false if its content is not what its name says. One that is there fails with EEXIST. */
  putBlob(hash: string, encoding: Encoding | undefined, content: AsyncIterable<Buffer>): Promise<boolean>
  /** Writes a manifest of a backup, also of a deployment that is not complete. Its tree is in `serverDirectory`. */
  putManifest(deploymentId: string, manifest: Manifest): Promise<void>

  /** A sentence if the store cannot be used. */
  readiness(): Promise<string | null>
  close(): void
}
