// A project's build caches, separated by trust: one for production, one per branch, and one per fork's pull request.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { removeTree } from '../../../platform/files/remove-tree.ts'
import type { Build } from '../../../services/deployments/index.ts'

/** Folders worth caching, relative to the root directory. In a cache, each is named by its index. */
const cachedFolders = [
  'node_modules',
  '.next/cache',
  '.astro',
  '.cache',
  '.parcel-cache',
  '.svelte-kit',
  '.nuxt',
  'node_modules/.cache',
  '.turbo',
] as const
const unusedByServers: readonly string[] = ['.next/cache', 'node_modules/.cache', '.turbo']

export type CachedFolder = {
  /** Its name in the cache. */
  id: string
  /** Relative to the tree. */
  path: string
  isDependencies: boolean
  /** Whether servers don't need it. */
  onlyForBuilds: boolean
}

// The dependencies of larger workspaces aren't cached.
const maxMembers = 300

/**
 * `root` is the root directory, and `members` are the directories of its workspace's packages. Each is empty or has a
 * trailing slash.
 */
export function foldersOf(root: string, members: string[]): CachedFolder[] {
  const own = cachedFolders.map((name, index) => ({
    id: String(index),
    path: root + name,
    isDependencies: index === 0,
    onlyForBuilds: unusedByServers.includes(name),
  }))
  const others = members.filter((directory) => directory !== root)
  if (others.length > maxMembers) return own.slice(1)
  const id = (path: string) => createHash('sha256').update(path).digest('hex').slice(0, 16)
  return [
    ...own,
    ...others
      .map((directory) => `${directory}node_modules`)
      .map((path) => ({ id: id(path), path, isDependencies: true, onlyForBuilds: false })),
  ]
}

export type CacheInfo = {
  /** Key of the cached dependencies; null if they can't be reused. */
  key: string | null
  /** Ids of the folders with dependencies. Default: the root directory's. */
  dependencies?: string[]
  kb: number
  usedAt: string
}

export type Caches = {
  /**
   * Moves a cache out for one build, so a concurrent build starts without one. An `own` cache may be stored changed;
   * a preview that borrows production's cache returns it unchanged.
   */
  acquire(build: Build, to: string): Promise<{ note: CacheInfo; own: boolean } | null>
  /** While `save` runs, other builds wait for the cache for a while instead of starting without it. */
  whileSaving(build: Build, save: () => Promise<void>): Promise<void>
  /** Stores an own cache in the slot it was acquired from. */
  store(build: Build, from: string, note: CacheInfo): Promise<void>
  /** Returns a borrowed cache. */
  returnBorrowed(build: Build, from: string): Promise<void>
  removeProject(projectId: string): Promise<void>
  /** Removes the least recently used caches until there is room or none is left. */
  makeRoom(enough: () => Promise<boolean>): Promise<void>
}

const infoFile = 'note.json'
const removedMark = '.removed-'
// Copying the dependencies of a large server takes less.
const maxWaitMs = 15_000

export function openCaches(root: string, maxMb: number): Caches {
  const ownSlot = ({ production, untrusted, ref }: Build) =>
    production
      ? 'production'
      : `${untrusted ? 'fork' : 'branch'}-${createHash('sha256').update(ref).digest('hex').slice(0, 16)}`
  const slotOf = (build: Build, slot = ownSlot(build)) => join(root, build.projectId, slot)

  const saves = new Map<string, Promise<void>>()

  /** Also null for an incomplete file, as after a power loss. */
  async function readInfo(directory: string): Promise<CacheInfo | null> {
    try {
      const note = JSON.parse(await readFile(join(directory, infoFile), 'utf8')) as Partial<CacheInfo> | null
      return typeof note?.kb === 'number' && typeof note.usedAt === 'string' ? (note as CacheInfo) : null
    } catch {
      return null
    }
  }

  async function move(from: string, to: string): Promise<boolean> {
    return rename(from, to).then(
      () => true,
      () => false,
    )
  }

  /** Renames the cache first, so that no build acquires a half-removed one. */
  async function clear(slot: string): Promise<void> {
    const removedPath = `${slot}${removedMark}${randomBytes(6).toString('hex')}`
    if (await move(slot, removedPath)) await removeTree(removedPath)
  }

  /** A cache without its info file is incomplete, for example after a crash, and isn't used. */
  async function acquireSlot(slot: string, to: string): Promise<CacheInfo | null> {
    const saved = saves.get(slot)
    if (saved) await Promise.race([saved, setTimeout(maxWaitMs, null, { ref: false })])
    if (!(await move(slot, to))) return null
    const note = await readInfo(to)
    if (note === null) await removeTree(to)
    return note
  }

  async function storeSlot(slot: string, from: string, note: CacheInfo): Promise<void> {
    await writeFile(join(from, infoFile), JSON.stringify(note))
    await mkdir(dirname(slot), { recursive: true, mode: 0o700 })
    // Another build may have stored its cache since. The later one wins.
    await clear(slot)
    await move(from, slot)
  }

  /** Lists complete caches, least recently used first, and removes the remains of others. */
  async function list(): Promise<{ slot: string; note: CacheInfo }[]> {
    const found: { slot: string; note: CacheInfo }[] = []
    for (const projectId of await readdir(root).catch(() => [])) {
      for (const name of await readdir(join(root, projectId)).catch(() => [])) {
        const slot = join(root, projectId, name)
        if (name.includes(removedMark)) {
          await removeTree(slot)
          continue
        }
        const note = await readInfo(slot)
        if (note) found.push({ slot, note })
        else await clear(slot)
      }
    }
    return found.sort((a, b) => (a.note.usedAt < b.note.usedAt ? -1 : 1))
  }

  async function evict(): Promise<void> {
    const found = await list()
    let kb = found.reduce((sum, { note }) => sum + note.kb, 0)
    for (const { slot, note } of found) {
      if (kb <= maxMb * 1024) return
      kb -= note.kb
      await clear(slot)
    }
  }

  return {
    async acquire(build, to) {
      const own = await acquireSlot(slotOf(build), to)
      // Production's cache may contain its variables, so forks can't borrow it.
      if (own || build.production || build.untrusted) return own && { note: own, own: true }
      const borrowed = await acquireSlot(slotOf(build, 'production'), to)
      return borrowed && { note: borrowed, own: false }
    },
    async whileSaving(build, save) {
      const slot = slotOf(build)
      const saved = save().finally(() => {
        if (saves.get(slot) === settled) saves.delete(slot)
      })
      const settled = saved.catch(() => {})
      saves.set(slot, settled)
      return saved
    },
    async store(build, from, note) {
      await storeSlot(slotOf(build), from, note)
      await evict()
    },
    async returnBorrowed(build, from) {
      const note = await readInfo(from)
      const slot = slotOf(build, 'production')
      // Unless a production build has stored a newer one since.
      if (note && !(await readInfo(slot))) await storeSlot(slot, from, note)
    },
    async makeRoom(enough) {
      for (const { slot } of await list()) {
        if (await enough()) return
        await clear(slot)
      }
    },
    removeProject: (projectId) => removeTree(join(root, projectId)),
  }
}
