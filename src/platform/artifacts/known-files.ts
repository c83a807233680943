// Remembers which stored files this process found intact or made durable, so that it needn't read them again. A file that
// was changed or replaced since is forgotten: its inode, size or time differs.
import { stat, utimes } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'

export type KnownFiles = {
  /** Marks a file as used now. Returns its size if it is known to be intact, false if not, null if it doesn't exist. */
  use(path: string): Promise<number | false | null>
  /** The file was read and found intact after it was marked. */
  noteWhole(path: string): Promise<void>
  /** The file was just written. */
  noteWritten(path: string): Promise<void>
  /** Whether the file was made durable. `identity` is that of the current file. */
  isDurable(path: string, identity?: string): boolean
  noteDurable(path: string): Promise<void>
}

const maxFiles = 100_000
// Disks can damage files that nobody writes to, so each file is read again now and then.
const rereadAfterMs = 3600_000
// How long a mark counts as fresh: the sweep spares files that were used within hours.
const freshMarkMs = 60_000
// The mark has whole milliseconds. File systems store it to within this, but stamp writes with a coarser clock.
const toleranceMs = 0.01

type KnownFile = { identity: string; size: number; markedMs: number; changedMs: number; readMs: number }
type FileStat = { ino: number; birthtimeMs: number; mtimeMs: number }

/** Inodes are reused for other files; the creation time tells those apart. */
export const identityOf = ({ ino, birthtimeMs }: Pick<FileStat, 'ino' | 'birthtimeMs'>) => `${ino} ${birthtimeMs}`

const hasMark = (found: FileStat, markedMs: number) => Math.abs(found.mtimeMs - markedMs) < toleranceMs

export function createKnownFiles(): KnownFiles {
  // With `max` instead of `maxSize`, the caches would allocate all their memory at once.
  const limit = { maxSize: maxFiles, sizeCalculation: () => 1 }
  const marks = new LRUCache<string, number>(limit)
  const whole = new LRUCache<string, KnownFile>(limit)
  const durable = new LRUCache<string, string>(limit)
  const statOf = (path: string) => stat(path).catch(() => null)

  /** Whether nobody has written to the file since we marked it. */
  async function isUnchanged(path: string, known: KnownFile | undefined): Promise<boolean> {
    if (!known || Date.now() - known.readMs > rereadAfterMs) return false
    const now = await statOf(path)
    if (now === null || identityOf(now) !== known.identity || now.size !== known.size) return false
    // A write can happen to get the same mtime as the mark, but it also changes the ctime.
    return hasMark(now, known.markedMs) && now.ctimeMs === known.changedMs
  }

  async function mark(path: string): Promise<number | null> {
    const now = new Date()
    const isThere = await utimes(path, now, now).then(
      () => true,
      () => false,
    )
    if (!isThere) return null
    marks.set(path, now.getTime())
    return now.getTime()
  }

  async function noteWhole(path: string): Promise<void> {
    const markedMs = marks.get(path)
    const now = await statOf(path)
    if (now === null || markedMs === undefined || !hasMark(now, markedMs)) return
    const { size, ctimeMs: changedMs } = now
    whole.set(path, { identity: identityOf(now), size, markedMs, changedMs, readMs: Date.now() })
  }

  return {
    async use(path) {
      const known = whole.get(path)
      const isKnown = await isUnchanged(path, known)
      if (isKnown && Date.now() - known!.markedMs < freshMarkMs) return known!.size
      whole.delete(path)
      const markedMs = await mark(path)
      if (markedMs === null) return null
      if (!isKnown) return false
      const changedMs = (await statOf(path))?.ctimeMs
      if (changedMs !== undefined) whole.set(path, { ...known!, markedMs, changedMs })
      return known!.size
    },
    noteWhole,
    async noteWritten(path) {
      await mark(path)
      await noteWhole(path)
    },
    isDurable: (path, identity) => durable.has(path) && (identity === undefined || durable.get(path) === identity),
    async noteDurable(path) {
      const now = await statOf(path)
      if (now) durable.set(path, identityOf(now))
    },
  }
}
