// Free space of a disk, and whether an error says that there is none.
import { statfs } from 'node:fs/promises'

/** What a program without special rights may still write. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}

/** Whether this error, or what caused it, is a disk without room. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT' || isDiskFull(error.cause)
}
