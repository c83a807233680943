// The end of a build: the output directory goes into the store, and only what lies in it.
import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { Artifacts, Manifest, StoredFile } from '../../artifacts.ts'
import { BuildFailure } from './failure.ts'

const maxFiles = 50_000
const maxBytes = 2 * 1024 ** 3
// Never part of a site, also where a project serves its whole tree.
const neverPublished = new Set(['.git', 'node_modules'])
const storesAtOnce = 8

/** The first of the directories that is there, inside the root. */
export async function findOutput(root: string, candidates: string[]): Promise<string> {
  const base = await realpath(root)
  for (const candidate of candidates) {
    const path = await realpath(join(root, candidate)).catch(() => null)
    if (path === null || !(await stat(path)).isDirectory()) continue
    if (path !== base && !path.startsWith(base + sep)) {
      throw new BuildFailure('output_unsafe', `The output directory ${candidate} leads out of the project.`)
    }
    return path
  }
  const wanted = candidates.length === 1 ? `${candidates[0]} is` : `None of ${candidates.join(', ')} is`
  throw new BuildFailure('output_missing', `${wanted} there after the build; set outputDirectory to where it writes.`)
}

export async function publishFiles(artifacts: Artifacts, output: string): Promise<Manifest['files']> {
  const paths = await listFiles(output)
  const files: [string, StoredFile][] = []
  const queue = paths[Symbol.iterator]()
  async function storeNext(): Promise<void> {
    for (const path of queue) files.push([path, await artifacts.store(join(output, path))])
  }
  await Promise.all(Array.from({ length: storesAtOnce }, storeNext))
  if (files.length === 0) throw new BuildFailure('output_missing', 'The output directory is empty.')
  return Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Every regular file, and every link whose end lies inside too; nothing runs in the tree any more, so nothing moves. */
async function listFiles(output: string): Promise<string[]> {
  const found: string[] = []
  let bytes = 0
  const folders = [output]
  while (folders.length > 0) {
    const folder = folders.pop()!
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      if (neverPublished.has(entry.name)) continue
      const path = join(folder, entry.name)
      if (entry.isDirectory()) {
        folders.push(path)
        continue
      }
      if (entry.isSymbolicLink()) {
        const target = await realpath(path).catch(() => null)
        if (target === null || !target.startsWith(output + sep)) {
          throw new BuildFailure(
            'output_unsafe',
            `${relative(output, path)} is a link that leaves the output directory.`,
          )
        }
        // A linked folder would be walked for ever if it held itself.
        if (!(await stat(target)).isFile()) continue
      } else if (!entry.isFile()) continue
      bytes += (await lstat(path)).size
      found.push(relative(output, path))
      if (found.length > maxFiles)
        throw new BuildFailure('output_too_large', `The output has more than ${maxFiles} files.`)
      if (bytes > maxBytes) throw new BuildFailure('output_too_large', 'The output is larger than 2 GiB.')
    }
  }
  return found
}
