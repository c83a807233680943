// What this process knows of stored files without reading them again: which were whole, and which are on the disk. A file
// that was changed or replaced since, by whomever, is not known any more: its inode, size or times are others then.
import { stat, utimes } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'

export type KnownFiles = {
  /** Marks a file as used now: whether its content is known to be whole, or null if there is no such file. */
  use(path: string): Promise<boolean | null>
  /** Its content was just read or written, after it was marked. */
  noteWhole(path: string): Promise<void>
  /** Whether it was made durable; `identity` is that of the file that is there now. */
  isDurable(path: string, identity?: string): boolean
  noteDurable(path: string): Promise<void>
}

const most = 100_000
// A disk may damage a file without anybody writing to it: now and then each is read again.
const wholeForMs = 3600_000

type Known = { identity: string; size: number; usedMs: number; readMs: number }
type Found = { ino: number; birthtimeMs: number }

/** Inodes are given to other files later on; the time when a file was made is not. */
export const identityOf = ({ ino, birthtimeMs }: Found) => `${ino} ${birthtimeMs}`

export function createKnownFiles(): KnownFiles {
  const whole = new LRUCache<string, Known>({ max: most })
  const durable = new LRUCache<string, string>({ max: most })
  const look = (path: string) => stat(path).catch(() => null)

  /** Nobody has written to it since it was marked here. */
  async function isUnchanged(path: string, known: Known | undefined): Promise<boolean> {
    if (!known || Date.now() - known.readMs > wholeForMs) return false
    const now = await look(path)
    const { identity, size, usedMs } = known
    return now !== null && identityOf(now) === identity && now.size === size && Math.abs(now.mtimeMs - usedMs) < 1
  }

  return {
    async use(path) {
      const known = whole.get(path)
      const isKnown = await isUnchanged(path, known)
      const now = new Date()
      const marked = await utimes(path, now, now).then(
        () => true,
        () => false,
      )
      if (isKnown && marked) whole.set(path, { ...known!, usedMs: now.getTime() })
      else whole.delete(path)
      return marked ? isKnown : null
    },
    async noteWhole(path) {
      const now = await look(path)
      if (now) whole.set(path, { identity: identityOf(now), size: now.size, usedMs: now.mtimeMs, readMs: Date.now() })
    },
    isDurable: (path, identity) => durable.has(path) && (identity === undefined || durable.get(path) === identity),
    async noteDurable(path) {
      const now = await look(path)
      if (now) durable.set(path, identityOf(now))
    },
  }
}
