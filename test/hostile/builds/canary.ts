// Files outside of every sandbox, in a directory of root's: whoever reads, changes or removes one is found out.
import { chmod, mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'

export type Canary = {
  directory: string
  /** One of the files. */
  file: string
  secret: string
  /** Nobody has read, changed, added or removed anything. */
  expectUntouched(): Promise<void>
  remove(): Promise<void>
}

const longAgo = new Date('2001-01-01T00:00:00Z')
const recent = new Date('2002-02-02T00:00:00Z')
// Folders that builds and caches know by these names.
const paths = [
  ...['secret.txt', 'index.html', 'cache/secret.txt', '.git/config'],
  ...['node_modules/ms/index.js', 'dist/index.html'],
]

export async function plantCanary(): Promise<Canary> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-canary-'))
  const secret = `secret-${directory.slice(-6)}`
  for (const path of paths) {
    await mkdir(join(directory, path, '..'), { recursive: true })
    await writeFile(join(directory, path), secret, { mode: 0o600 })
    // Read, it would have a newer time of access than of change, also where times of access are kept sparingly.
    await utimes(join(directory, path), longAgo, recent)
  }
  await chmod(directory, 0o700)
  const listing = async () => (await readdir(directory, { recursive: true })).sort()
  const before = await listing()
  return {
    directory,
    file: join(directory, paths[0]!),
    secret,
    async expectUntouched() {
      expect(await listing()).toEqual(before)
      for (const path of paths) {
        const { atime, mtime } = await stat(join(directory, path))
        expect({ path, atime, mtime }).toEqual({ path, atime: longAgo, mtime: recent })
      }
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}
