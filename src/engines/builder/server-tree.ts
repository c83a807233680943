// The end of a server's build: writes its tree from the packer's stream; the server runs from there.
import { createWriteStream } from 'node:fs'
import { mkdir, open, rename, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { removeTree } from '../../platform/remove-tree.ts'
import type { Entry, Limits } from './entries.ts'
import { BuildFailure } from './failure.ts'

export const serverLimits: Limits = { entries: 300_000, bytes: 4 * 1024 ** 3, pathBytes: 3000, depth: 200 }

const largeBytes = 4 << 20
const writesAtOnce = 16

/**
 * Writes into a directory that no other process uses, and only with checked names. Links are made last, so nothing is
 * ever written through one. Returns the size of all files.
 */
export async function layOut(entries: AsyncIterable<Entry>, directory: string): Promise<{ bytes: number }> {
  const aside = `${directory}.new`
  await removeTree(aside)
  await mkdir(aside, { recursive: true, mode: 0o755 })
  let bytes = 0
  async function* counted(): AsyncGenerator<Entry> {
    for await (const entry of entries) {
      if (entry.kind === 'file') bytes += entry.size
      yield entry
    }
  }
  try {
    await writeTree(counted(), aside)
  } catch (error) {
    await removeTree(aside)
    throw error
  }
  await removeTree(directory)
  await rename(aside, directory)
  return { bytes }
}

async function writeTree(entries: AsyncIterable<Entry>, aside: string): Promise<void> {
  const made = new Set(['.'])
  const links: { path: string; target: string }[] = []
  const running = new Set<Promise<void>>()
  let failure: unknown

  async function makeFolder(path: string): Promise<void> {
    if (made.has(path)) return
    await makeFolder(dirname(path))
    await mkdir(join(aside, path), { mode: 0o755 }).catch(refuse(path))
    made.add(path)
  }

  async function add(entry: Entry): Promise<void> {
    if (entry.kind === 'link') return void links.push(entry)
    await makeFolder(entry.kind === 'directory' ? entry.path : dirname(entry.path))
    if (entry.kind === 'directory') return
    const { path } = entry
    const place = join(aside, path)
    const mode = entry.executable ? 0o755 : 0o644
    if (entry.size > largeBytes) {
      return pipeline(entry.content.stream(), createWriteStream(place, { flags: 'wx', mode })).catch(refuse(path))
    }
    const content = await entry.content.whole()
    const writing: Promise<void> = write(place, content, mode)
      .catch(refuse(path))
      .catch((error) => {
        failure ??= error
      })
      .finally(() => running.delete(writing))
    running.add(writing)
    if (running.size >= writesAtOnce) await Promise.race(running)
  }

  try {
    for await (const entry of entries) {
      await add(entry)
      if (failure) break
    }
  } finally {
    // The caller may remove the directory, so no write may be in progress.
    await Promise.all(running)
  }
  if (failure) throw failure
  for (const { path, target } of links) {
    await makeFolder(dirname(path))
    await symlink(target, join(aside, path)).catch(refuse(path))
  }
}

async function write(place: string, content: Buffer, mode: number): Promise<void> {
  const file = await open(place, 'wx', mode)
  try {
    await file.writeFile(content)
  } finally {
    await file.close()
  }
}

/** An existing name is the fault of the packed tree; a full disk is the platform's. */
function refuse(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== 'EEXIST' && error.code !== 'ENOTDIR') throw error
    throw new BuildFailure('output_unsafe', `${path} is there twice, so it cannot be published.`)
  }
}
