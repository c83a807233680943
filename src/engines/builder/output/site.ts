// Stores the files of a site by content hash and lists their paths for the manifest.
import type { Artifacts, Manifest, StoredFile } from '../../../platform/artifacts/artifacts.ts'
import { createPauses } from '../../../platform/pauses.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { Candidate } from '../project/output.ts'
import { checkPath, checkTarget, type Entry, type FileContent, type Limits, maxTargetLength } from '../tree/entries.ts'
import { followLinks, type LinkLimits } from '../tree/links.ts'
import type { Source, TreeEntry } from '../tree/source-tree.ts'
import type { Guard } from './withheld.ts'

export const siteLimits: Limits = { entries: 50_000, bytes: 2 * 1024 ** 3, pathBytes: 1024, depth: 64 }
// Every edge that serves the site holds all paths in memory.
const linkLimits: LinkLimits = { ...siteLimits, allPathBytes: 4 * 1024 ** 2 }
/** Never published, even if a project serves its whole tree. */
export const neverPublished = ['.git', 'node_modules']

/** Stores small files in parallel and large ones as streams. The guard withholds files that shouldn't be published. */
export async function storeSite(
  artifacts: Artifacts,
  entries: AsyncIterable<Entry>,
  inside: string,
  guard: Guard<StoredFile> | null = null,
): Promise<Manifest['files']> {
  const files = new Map<string, StoredFile>()
  const links = new Map<string, string>()
  const folders: string[] = []
  const seen = new Map<string, string>()
  const running = new Set<Promise<void>>()
  let failure: unknown
  for await (const entry of entries) {
    if (entry.kind === 'directory') {
      folders.push(entry.path)
      continue
    }
    refuseDuplicate(seen, entry.path)
    if (entry.kind === 'link') links.set(entry.path, entry.target)
    else if (entry.size > artifacts.maxBufferedBytes) {
      files.set(entry.path, await artifacts.store(entry.path, entry.size, entry.content.stream()))
    } else {
      const content = entry.content.sha256 ? null : await entry.content.whole()
      const storing: Promise<void> = storeSmall(artifacts, entry, content, guard)
        .then((stored) => void files.set(entry.path, stored))
        .catch((error) => {
          failure ??= error
        })
        .finally(() => running.delete(storing))
      running.add(storing)
      if (running.size >= artifacts.storesAtOnce) await Promise.race(running)
      if (failure) break
    }
  }
  await Promise.all(running)
  if (failure) throw failure
  // Path → path of the published file. The guard checks both.
  const origins = new Map([...files.keys()].map((path) => [path, path]))
  const published = await followLinks({ files: origins, links, folders, root: inside }, linkLimits)
  await guard?.filter(published, files)
  if (published.size === 0) throw new BuildFailure('output_missing', 'The output directory is empty.')
  const sorted = [...published].sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([path, origin]) => [path, files.get(origin)!]))
}

/** `content` is null if the store already has the file. */
async function storeSmall(
  artifacts: Artifacts,
  { path, size, content: { sha256, whole } }: Extract<Entry, { kind: 'file' }>,
  content: Buffer | null,
  guard: Guard<StoredFile> | null,
): Promise<StoredFile> {
  const known = sha256 ? await artifacts.findStored?.(path, sha256, size) : null
  const isInspected = guard?.needsContent(path, size)
  if (known && !isInspected) return known
  const bytes = content ?? (await whole())
  const stored = known ?? (await artifacts.store(path, bytes.length, [bytes]))
  if (isInspected) guard!.inspect(stored, bytes)
  return stored
}

/** Names that differ only in Unicode normalization look the same and are one file on other systems. */
function refuseDuplicate(seen: Map<string, string>, path: string): void {
  const normal = path.normalize('NFC')
  const other = seen.get(normal)
  if (other !== undefined) {
    const names = other === path ? `${path} appears twice` : `${path} and another file have the same name in Unicode`
    throw new BuildFailure('output_unsafe', `${names}, so they cannot be published.`)
  }
  seen.set(normal, path)
}

/** Finds the output in a commit that needs no build; else returns the names in its root directory. */
export function outputInSource(
  source: Source,
  root: string,
  candidates: Candidate[],
): { path: string; entries: TreeEntry[] } | { missing: string[] } {
  const below = (prefix: string) => [...source.entries].filter(([path]) => path.startsWith(prefix))
  for (const { path, needsIndex } of candidates) {
    const prefix = path === '.' ? root : `${root}${path}/`
    if (needsIndex && source.entries.get(`${prefix}index.html`)?.kind === undefined) continue
    const found = below(prefix)
    if (found.length > 0) return { path: prefix, entries: found.map(([, entry]) => entry) }
  }
  const names = below(root).map(([path]) => path.slice(root.length).split('/', 1)[0]!)
  return { missing: [...new Set(names)].slice(0, 200).map((name) => Buffer.from(name, 'latin1').toString()) }
}

/** Files of a commit as packer entries, with the same limits. */
export async function* entriesOfSource(
  source: Source,
  output: { path: string; entries: TreeEntry[] },
): AsyncGenerator<Entry> {
  const skip = Buffer.byteLength(output.path, 'latin1')
  const selected: (TreeEntry & { path: string })[] = []
  const pauses = createPauses()
  for (const entry of output.entries) {
    const pause = pauses()
    if (pause) await pause
    const path = checkPath(entry.name.subarray(skip), siteLimits)
    if (!path.split('/').some((name) => neverPublished.includes(name))) selected.push({ ...entry, path })
  }
  const bytes = selected.reduce((sum, { size }) => sum + size, 0)
  if (selected.length > siteLimits.entries)
    throw new BuildFailure('output_too_large', `The output is more than ${siteLimits.entries} files.`)
  if (bytes > siteLimits.bytes) throw new BuildFailure('output_too_large', 'The output is larger than 2048 MiB.')
  let next = 0
  for await (const content of source.read(selected)) {
    const { path, size, kind } = selected[next++]!
    // In git, the target of a link can have any size.
    if (kind === 'link' && size > maxTargetLength)
      throw new BuildFailure(
        'output_unsafe',
        `${path} is a link whose target is not a path, so it cannot be published.`,
      )
    if (kind === 'link') yield { kind, path, target: checkTarget(path, await content.whole()) }
    else yield { kind, path, executable: false, size, content: content as FileContent }
  }
}
