// What a project keeps from one build to the next, apart by trust: production's own, and one for each branch.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { removeTree } from '../../remove-tree.ts'
import type { Build } from '../../services/builds.ts'

/**
 * Where package managers and frameworks keep what they need not make again, relative to the root directory. A cache
 * holds them by number.
 */
export const cachedFolders = [
  'node_modules',
  '.next/cache',
  '.astro',
  '.cache',
  '.parcel-cache',
  '.svelte-kit',
  '.nuxt',
] as const

export type CacheNote = {
  /** Of the dependencies in it; null if they are of no use. */
  key: string | null
  /** Numbers of the folders in it. */
  folders: number[]
  kb: number
  usedAt: string
}

export type Caches = {
  /**
   * Takes a cache away for one build: another build at the same time finds none and begins anew. `own` may be given
   * back changed; what a preview borrows of production is given back as it was.
   */
  take(build: Build, to: string): Promise<{ note: CacheNote; own: boolean } | null>
  /** Gives a cache back under the name that `take` took it from. */
  give(build: Build, from: string, note: CacheNote): Promise<void>
  /** Gives back what was borrowed. */
  giveBack(build: Build, from: string): Promise<void>
  removeProject(projectId: string): Promise<void>
}

const noteFile = 'note.json'
const removed = '.removed-'

export function openCaches(root: string, mostMb: number): Caches {
  const ownSlot = ({ production, ref }: Build) =>
    production ? 'production' : `branch-${createHash('sha256').update(ref).digest('hex').slice(0, 16)}`
  const slotOf = (build: Build, slot = ownSlot(build)) => join(root, build.projectId, slot)

  /** Null also for one that is torn: a machine that loses power may leave an empty file under the whole one's name. */
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

  /** Under another name first: nobody must take one of which half is gone already, while its note is still there. */
  async function clear(slot: string): Promise<void> {
    const aside = `${slot}${removed}${randomBytes(6).toString('hex')}`
    if (await move(slot, aside)) await removeTree(aside)
  }

  /** One that has no note, as after a crash in the middle, is never taken for whole. */
  async function takeSlot(slot: string, to: string): Promise<CacheNote | null> {
    if (!(await move(slot, to))) return null
    const note = await readNote(to)
    if (note === null) await removeTree(to)
    return note
  }

  async function giveSlot(slot: string, from: string, note: CacheNote): Promise<void> {
    await writeFile(join(from, noteFile), JSON.stringify(note))
    await mkdir(dirname(slot), { recursive: true, mode: 0o700 })
    // Another build may have given its own meanwhile; the later one stays.
    await clear(slot)
    await move(from, slot)
  }

  async function evict(): Promise<void> {
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
    found.sort((a, b) => (a.note.usedAt < b.note.usedAt ? -1 : 1))
    let kb = found.reduce((sum, { note }) => sum + note.kb, 0)
    for (const { slot, note } of found) {
      if (kb <= mostMb * 1024) return
      kb -= note.kb
      await clear(slot)
    }
  }

  return {
    async take(build, to) {
      const own = await takeSlot(slotOf(build), to)
      if (own || build.production) return own && { note: own, own: true }
      const borrowed = await takeSlot(slotOf(build, 'production'), to)
      return borrowed && { note: borrowed, own: false }
    },
    async give(build, from, note) {
      await giveSlot(slotOf(build), from, note)
      await evict()
    },
    async giveBack(build, from) {
      const note = await readNote(from)
      const slot = slotOf(build, 'production')
      // A production build that ended meanwhile has given a newer one.
      if (note && !(await readNote(slot))) await giveSlot(slot, from, note)
    },
    removeProject: (projectId) => removeTree(join(root, projectId)),
  }
}
