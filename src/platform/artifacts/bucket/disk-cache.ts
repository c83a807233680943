// Copies of objects on this machine's disk, limited in size: the least recently used go first. A file's mtime is the time
// of its last use, so that several processes can share a cache and a restart keeps it.
import { execFile } from 'node:child_process'
import { readdir, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { removeTree } from '../../files/remove-tree.ts'
import { writeAtomically } from '../blobs.ts'
import { type Folders, openFolder } from '../local-inventory.ts'

export type DiskCache = {
  /** Writes a whole file through a temporary one. */
  put(path: string, bytes: number, write: (temporaryPath: string) => Promise<unknown>): Promise<void>
  /** Halves the cache when the disk is full. */
  makeRoom(): Promise<void>
  /** Counts bytes that were written into the folders by other means. */
  added(bytes: number): void
  /** Marks a file as used now. */
  used(path: string): void
  /** Keeps a tree until the returned function is called. */
  pin(tree: string): () => void
  /** Resolves when no removal is in progress. */
  idle(): Promise<void>
  close(): void
}

// Removes this much more than necessary, so that not every new file triggers a removal.
const spareShare = 0.1
// The folders are scanned again after this much was added, because other processes also add files.
const rescanShare = 0.05
const temporaryMs = 3600_000
// Users of a tree touch it more often than this.
const treeIdleMs = 15 * 60_000
const pinEveryMs = 5 * 60_000

type Item = { path: string; bytes: number; second: number; isTree: boolean }

export function createDiskCache(folders: Folders, maxBytes: number, log?: Logger): DiskCache {
  /** The size at the last scan, and what was added since. */
  let known = Number.POSITIVE_INFINITY
  let added = 0
  let removing: Promise<void> | null = null
  const pins = new Map<string, number>()
  const treeBytes = new Map<string, number>()
  const touch = (path: string) => void utimes(path, new Date(), new Date()).catch(() => {})
  const pinning = setInterval(() => [...pins.keys()].forEach(touch), pinEveryMs)
  pinning.unref()

  async function* items(): AsyncGenerator<Item> {
    for await (const { name } of await openFolder(folders.files)) yield* filesIn(join(folders.files, name))
    yield* filesIn(folders.manifests)
    for await (const { name } of await openFolder(folders.servers)) yield* itemAt(join(folders.servers, name), true)
  }

  async function* filesIn(folder: string): AsyncGenerator<Item> {
    for (const name of await readdir(folder).catch(() => [])) yield* itemAt(join(folder, name), false)
  }

  async function* itemAt(path: string, isTree: boolean): AsyncGenerator<Item> {
    const found = await stat(path).catch(() => null)
    if (!found) return
    const isStale = path.endsWith('.new') && found.mtimeMs < Date.now() - temporaryMs
    if (isStale) await (isTree ? removeTree(path) : rm(path, { force: true }))
    else if (isTree === found.isDirectory()) {
      const bytes = isTree ? await sizeOf(path) : found.size
      yield { path, bytes, second: Math.floor(found.mtimeMs / 1000), isTree }
    }
  }

  /** A tree doesn't change once it has its name. */
  async function sizeOf(tree: string): Promise<number> {
    const before = treeBytes.get(tree)
    if (before !== undefined) return before
    const bytes = await new Promise<number>((resolve) => {
      execFile('du', ['-s', '-k', '--', tree], (_error, stdout) => resolve(1024 * (Number.parseInt(stdout, 10) || 0)))
    })
    if (!tree.endsWith('.new')) treeBytes.set(tree, bytes)
    return bytes
  }

  const isRemovable = ({ path, second, isTree }: Item) =>
    !path.endsWith('.new') && !(isTree && (pins.has(path) || 1000 * second > Date.now() - treeIdleMs))

  /** Scans twice, so that its memory doesn't grow with the number of files. */
  async function shrink(limit: number): Promise<void> {
    const bySecond = new Map<number, number>()
    let bytes = 0
    added = 0
    for await (const item of items()) {
      bytes += item.bytes
      if (isRemovable(item)) bySecond.set(item.second, (bySecond.get(item.second) ?? 0) + item.bytes)
    }
    if (bytes > limit) bytes -= await removeOldest(bySecond, bytes - limit * (1 - spareShare))
    known = bytes
  }

  async function removeOldest(bySecond: Map<number, number>, wanted: number): Promise<number> {
    // Removes everything last used before some second, and as many of that second's files as necessary.
    let missing = wanted
    let border = Number.NEGATIVE_INFINITY
    for (const [second, bytes] of [...bySecond].sort(([a], [b]) => a - b)) {
      border = second
      if (bytes >= missing) break
      missing -= bytes
    }
    let removed = 0
    for await (const item of items()) {
      if (!isRemovable(item) || item.second > border || (item.second === border && missing <= 0)) continue
      await (item.isTree ? removeTree(item.path) : rm(item.path, { force: true }))
      treeBytes.delete(item.path)
      removed += item.bytes
      if (item.second === border) missing -= item.bytes
    }
    return removed
  }

  function scan(limit = maxBytes): Promise<void> {
    removing ??= shrink(limit)
      .catch((err) => log?.warn({ err }, 'the cache of artifacts could not be made smaller'))
      .finally(() => {
        removing = null
        // It may have missed files that were added in the meantime.
        if (added > 0) count(0)
      })
    return removing
  }

  function count(bytes: number): void {
    added += bytes
    if (added > maxBytes * rescanShare || known + added > maxBytes) void scan()
  }

  return {
    async put(path, bytes, write) {
      await writeAtomically(path, write)
      count(bytes)
    },
    async makeRoom() {
      await scan()
      await scan(Math.min(known, maxBytes) / 2)
    },
    added: count,
    used: touch,
    pin(tree) {
      touch(tree)
      pins.set(tree, (pins.get(tree) ?? 0) + 1)
      let isPinned = true
      return () => {
        if (!isPinned) return
        isPinned = false
        const others = pins.get(tree)! - 1
        if (others > 0) pins.set(tree, others)
        else pins.delete(tree)
      }
    },
    async idle() {
      while (removing) await removing
    },
    close: () => clearInterval(pinning),
  }
}
