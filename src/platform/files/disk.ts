// Free disk space, and whether an error means that the disk is full.
import { statfs } from 'node:fs/promises'

// A disk that has room for this many files usually has room for this many bytes.
const bytesPerFile = 16 << 10

/** How many bytes an unprivileged program may still write in average files: a disk can run out of bytes or of files. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize, files, ffree } = await statfs(path)
  // Some file systems don't limit the number of files.
  return Math.min(bavail * bsize, files > 0 ? ffree * bytesPerFile : Number.POSITIVE_INFINITY)
}

/** Whether this error, or its cause, is a full disk. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT' || isDiskFull(error.cause)
}
