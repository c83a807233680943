// Free space of a disk, and whether an error says that there is none.
import { statfs } from 'node:fs/promises'

// A disk that can have so many files has one for so many bytes, usually.
const bytesPerFile = 16 << 10

/** What a program without special rights may still write, in files of usual size: a disk may run out of either. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize, files, ffree } = await statfs(path)
  // Some file systems have no such limit.
  return Math.min(bavail * bsize, files > 0 ? ffree * bytesPerFile : Number.POSITIVE_INFINITY)
}

/** Whether this error, or what caused it, is a disk without room. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT' || isDiskFull(error.cause)
}
