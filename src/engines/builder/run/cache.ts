// The build caches of a project, separated by trust: one for production, one for each branch, and one for each request of a fork.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { removeTree } from '../../../platform/files/remove-tree.ts'
import type { Build } from '../../../services/deployments/index.ts'

/** Cache folders of frameworks and dependencies, relative to the root directory. In a cache each is named by its index. */
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
  /** Its name in a cache. */
  id: string
  /** Relative to the tree. */
  path: string
  isDependencies: boolean
  /** No server needs it. */
  onlyForBuilds: boolean
}

// Dependencies of a larger workspace are installed each time.
const maxMembers = 300

/**
 * `root` is the root directory, and `members` are the directories of all packages of its workspace; each is empty or
 * has a slash at its end.
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

export type CacheNote = {
  /** Key of the dependencies in it; null if they cannot be reused. */
  key: string | null
  /** Ids of the folders that have them; default: that of the root directory. */
  dependencies?: string[]
  kb: number
  usedAt: string
}

export type Caches = {
  /**
   * Moves a cache out for one build: a concurrent build finds none and starts without. An `own` cache may be returned
   * changed; a preview that borrows production's cache returns it unchanged.
   */
  take(build: Build, to: string): Promise<{ note: CacheNote; own: boolean } | null>
  /** While `save` runs, which ends with `give`, others wait a while for the cache instead of starting without. */
  saving(build: Build, save: () => Promise<void>): Promise<void>
  /** Returns an own cache to the slot that `take` took it from. */
  give(build: Build, from: string, note: CacheNote): Promise<void>
  /** Returns a borrowed cache. */
  giveBack(build: Build, from: string): Promise<void>
  removeProject(projectId: string): Promise<void>
  /** Removes caches, the least recently used first, until there is room or none is left. */
  makeRoom(enough: () => Promise<boolean>): Promise<void>
}

const noteFile = 'note.json'
const removed = '.removed-'
// The dependencies of a large server are copied in less.
const maxWaitMs = 15_000

export function openCaches(root: string, maxMb: number): Caches {
  const ownSlot = ({ production, untrusted, ref }: Build) =>
    production
      ? 'production'
      : `${untrusted ? 'fork' : 'branch'}-${createHash('sha256').update(ref).digest('hex').slice(0, 16)}`
  const slotOf = (build: Build, slot = ownSlot(build)) => join(root, build.projectId, slot)

  const beingSaved = new Map<string, Promise<void>>()

  /** Null also for an incomplete note: after a power loss the file may be empty. */
  async function readNote(directory: string): Promise<CacheNote | null> {
    try {
      const note = JSON.parse(await readFile(join(directory, noteFile), 'utf8')) as Partial<CacheNote> | null
      return typeof note?.kb === 'number' && typeof note.usedAt === 'string' ? (note as CacheNote) : null
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

  /** Renames the cache before it is removed, so that no build takes a half-removed cache that still has its note. */
  async function clear(slot: string): Promise<void> {
    const aside = `${slot}${removed}${randomBytes(6).toString('hex')}`
    if (await move(slot, aside)) await removeTree(aside)
  }

  /** A cache without a note is incomplete, for example after a crash, and is not used. */
  async function takeSlot(slot: string, to: string): Promise<CacheNote | null> {
    const saved = beingSaved.get(slot)
    if (saved) await Promise.race([saved, setTimeout(maxWaitMs, null, { ref: false })])
    if (!(await move(slot, to))) return null
    const note = await readNote(to)
    if (note === null) await removeTree(to)
    return note
  }

  async function giveSlot(slot: string, from: string, note: CacheNote): Promise<void> {
    await writeFile(join(from, noteFile), JSON.stringify(note))
    await mkdir(dirname(slot), { recursive: true, mode: 0o700 })
    // Another build may have returned its own cache meanwhile; the later one is kept.
    await clear(slot)
    await move(from, slot)
  }

  /** All complete caches, the least recently used first; what is left of others is removed. */
  async function list(): Promise<{ slot: string; note: CacheNote }[]> {
    const found: { slot: string; note: CacheNote }[] = []
    for (const projectId of await readdir(root).catch(() => [])) {
      for (const name of await readdir(join(root, projectId)).catch(() => [])) {
        const slot = join(root, projectId, name)
        if (name.includes(removed)) {
          await removeTree(slot)
          continue
        }
        const note = await readNote(slot)
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
    async take(build, to) {
      const own = await takeSlot(slotOf(build), to)
      // What production has cached may hold values of its variables.
      if (own || build.production || build.untrusted) return own && { note: own, own: true }
      const borrowed = await takeSlot(slotOf(build, 'production'), to)
      return borrowed && { note: borrowed, own: false }
    },
    async saving(build, save) {
      const slot = slotOf(build)
      const saved = save().finally(() => {
        if (beingSaved.get(slot) === settled) beingSaved.delete(slot)
      })
      const settled = saved.catch(() => {})
      beingSaved.set(slot, settled)
      return saved
    },
    async give(build, from, note) {
      await giveSlot(slotOf(build), from, note)
      await evict()
    },
    async giveBack(build, from) {
      const note = await readNote(from)
      const slot = slotOf(build, 'production')
      // A production build that ended meanwhile has stored a newer one.
      if (note && !(await readNote(slot))) await giveSlot(slot, from, note)
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
