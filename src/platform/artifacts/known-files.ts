// What this process knows of stored files without reading them again: which were whole, and which are on the disk. A file
// that was changed or replaced since, by whomever, is not known any more: its inode, its size or its time is another one.
import { stat, utimes } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'

export type KnownFiles = {
  /** Marks a file as used now: its size if it is known to be whole, false if not, or null if there is no such file. */
  use(path: string): Promise<number | false | null>
  /** It was read and found whole since it was marked. */
  noteWhole(path: string): Promise<void>
  /** It was written just now. */
  noteWritten(path: string): Promise<void>
  /** Whether it was made durable; `identity` is that of the file that is there now. */
  isDurable(path: string, identity?: string): boolean
  noteDurable(path: string): Promise<void>
}

const most = 100_000
// A disk may damage a file without anybody writing to it: now and then each is read again.
const wholeForMs = 3600_000
// How long a mark of use is as good as a new one: a sweep leaves alone what was used within hours.
const markedForMs = 60_000
// The mark is a time in whole milliseconds. File systems keep it to less than this; they stamp writes by a coarser clock.
const sameMs = 0.01

type Known = { identity: string; size: number; markedMs: number; changedMs: number; readMs: number }
type Found = { ino: number; birthtimeMs: number; mtimeMs: number }

/** Inodes are given to other files later on; the time when a file was made is not. */
export const identityOf = ({ ino, birthtimeMs }: Pick<Found, 'ino' | 'birthtimeMs'>) => `${ino} ${birthtimeMs}`

const hasMark = (found: Found, markedMs: number) => Math.abs(found.mtimeMs - markedMs) < sameMs

export function createKnownFiles(): KnownFiles {
  // By size: with `max` they would reserve their whole memory at once.
  const bound = { maxSize: most, sizeCalculation: () => 1 }
  const marks = new LRUCache<string, number>(bound)
  const whole = new LRUCache<string, Known>(bound)
  const durable = new LRUCache<string, string>(bound)
  const look = (path: string) => stat(path).catch(() => null)

  /** Nobody has written to it since it was marked here. */
  async function isUnchanged(path: string, known: Known | undefined): Promise<boolean> {
    if (!known || Date.now() - known.readMs > wholeForMs) return false
    const now = await look(path)
    if (now === null || identityOf(now) !== known.identity || now.size !== known.size) return false
    // A write may be stamped with the very time of the mark, but it changes this one as well.
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
    const now = await look(path)
    if (now === null || markedMs === undefined || !hasMark(now, markedMs)) return
    const { size, ctimeMs: changedMs } = now
    whole.set(path, { identity: identityOf(now), size, markedMs, changedMs, readMs: Date.now() })
  }

  return {
    async use(path) {
      const known = whole.get(path)
      const isKnown = await isUnchanged(path, known)
      if (isKnown && Date.now() - known!.markedMs < markedForMs) return known!.size
      whole.delete(path)
      const markedMs = await mark(path)
      if (markedMs === null) return null
      if (!isKnown) return false
      const changedMs = (await look(path))?.ctimeMs
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
      const now = await look(path)
      if (now) durable.set(path, identityOf(now))
    },
  }
}
