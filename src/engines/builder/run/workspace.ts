// The directories of one build, and the platform's own sandboxed steps in them.
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { onAbort } from '../../../platform/abort.ts'
import { type Exit, type Sandbox, SandboxError, type SandboxedCommand } from '../../../sandbox/sandbox.ts'
import type { Build } from '../../../services/deployments/index.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import { asText, type Source } from '../tree/source-tree.ts'
import type { CachedFolder, CacheInfo, Caches } from './cache.ts'

/**
 * The host creates, mounts and removes these directories. It never opens anything that sandboxes created in them.
 *
 *     <build>/git          the bare repository, which only the host writes to
 *     <build>/work/tree    what the build works on
 *     <build>/work/cache   `downloads` and `folders`, and the host's own info file
 *
 * The steps below mount tree and cache together, so that folders can move between them by renaming. The customer's
 * commands only see the tree and the downloads, as separate mounts, and can't write to the parent directory.
 */
export type Workspace = {
  tree: string
  downloads: { host: string; empty: boolean }
  /** The bare repository, which holds the objects for git in the tree. */
  repository: { host: string; inside: string }
  /** Checks out the commit and restores the cache. Returns whether the cached dependencies match the key. */
  fill(source: Source, key: string | null): Promise<boolean>
  /**
   * Prepares the tree for running a server: moves folders that only builds need (if self-contained, all cached folders)
   * to the cache, and gives each file a single name and a plain mode. `read` gets the list of entries: kind, number of
   * names, size and path, NUL, the target of a link, NUL.
   */
  prepareServerTree<T>(selfContained: boolean, read: (list: Readable) => Promise<T>): Promise<T>
  /**
   * Saves the cache from the tree, or as a copy from `published` if the tree has moved there. Without a key, the
   * dependencies can't be reused.
   */
  saveCache(key: string | null, published?: string): Promise<void>
}

export type WorkspaceOptions = {
  sandbox: Sandbox
  caches: Caches
  build: Build
  /** `<build>`; exists. */
  directory: string
  folders: CachedFolder[]
  limits: SandboxedCommand['limits']
  log: BuildLog
  signal: AbortSignal
}

const repositoryInside = '/opt/berth/git'
// Mount point of `work`, where other sandboxes mount the tree.
const workInside = '/build'
const borrowedInside = '/borrowed'
const publishedInside = '/published'

// The customer's code doesn't run here, but its files are hostile: names are quoted, and links can't leave the sandbox.
const FILL = `
set -e
cd "$WORK/tree"
mkdir -p .git/objects/info .git/refs
echo 'ref: refs/heads/main' > .git/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n' > .git/config
printf '%s\\n' "$REPOSITORY/objects" > .git/objects/info/alternates
if [ -f "$REPOSITORY/shallow" ]; then cp "$REPOSITORY/shallow" .git/shallow; fi
git -c advice.detachedHead=false checkout -q --force "$COMMIT"
while [ $# -gt 0 ]; do
  GIT_INDEX_FILE=.git/submodule git read-tree "$2"
  GIT_INDEX_FILE=.git/submodule git checkout-index -a -f --prefix="$1/"
  rm -f .git/submodule
  shift 2
done
if [ -z "$FROM" ]; then exit 0; fi
cd "$WORK/tree"
for id in $FOLDERS; do
  eval "name=./\\$FOLDER_$id"
  if [ -e "$name" ] || [ -L "$name" ] || [ ! -d "$FROM/$id" ]; then continue; fi
  if mkdir -p -- "$name" && rmdir -- "$name" && $BRING "$FROM/$id" "$name"; then echo "brought $id"; fi
done
rm -rf "$WORK/cache/folders/"*
`

const TAKE = `
take() {
  for id in $FOLDERS; do
    eval "name=./\\$FOLDER_$id"
    to="$WORK/cache/folders/$id"
    if [ -e "$to" ] || [ ! -d "$name" ] || [ -L "$name" ]; then continue; fi
    "$@" "$name" "$to" || rm -rf "$to"
  done
}
`

// A hard link shared with the cache or a published tree would let one build change another's files. Most package
// managers leave plain trees, and checking that is cheaper than setting every mode.
const SETTLE = `
${TAKE}
set -e
chmod u+rwx "$WORK/tree"
cd "$WORK/tree"
take mv
rm -rf .git 2> /dev/null || { chmod -R u+rwX .git; rm -rf .git; }
if [ -n "$(find . ! -type l ! '(' -type d -perm 0755 ')' ! '(' -type f -links 1 '(' -perm 0644 -o -perm 0755 ')' ')' \
  -printf odd -quit || echo odd)" ]; then
  chmod -R u+rwX,go+rX,go-w,ug-s,-t .
  # A name that the build could not know.
  export COPY=".berth-$(od -A n -t x8 -N 16 /dev/urandom | tr -d ' ')"
  find . -type f -links +1 -exec sh -c '
    for file; do
      copy="\${file%/*}/$COPY"
      cp -p -T -- "$file" "$copy" && mv -f -T -- "$copy" "$file" || exit
    done' sh {} + || true
fi
exec find . -mindepth 1 -printf '%y %n %s %P\\0%l\\0'
`

const SAVE = `
${TAKE}
if [ -d "$FROM" ]; then cd "$FROM" && take $BRING; fi
cd "$WORK/cache"
ls folders | sed 's/^/saved /'
du -s -k . | sed 's/[^0-9].*//; s/^/kb /'
`

// git-lfs uses the objects that the host fetched, without network.
const lfsFilter = [
  ['filter.lfs.smudge', 'git-lfs smudge -- %f'],
  ['filter.lfs.process', 'git-lfs filter-process'],
  ['filter.lfs.required', 'true'],
] as const

function lfsEnvironment(): Record<string, string> {
  const settings = lfsFilter.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ])
  const storage = lfsFilter.length
  return {
    ...Object.fromEntries(settings),
    [`GIT_CONFIG_KEY_${storage}`]: 'lfs.storage',
    [`GIT_CONFIG_VALUE_${storage}`]: `${repositoryInside}/lfs`,
    GIT_CONFIG_COUNT: String(storage + 1),
  }
}

const maxPrintedLength = 20_000

const idsIn = (folders: CachedFolder[]) => folders.map(({ id }) => id).join(' ')

/** The ids of folders that a script printed. */
const idsOf = (verb: 'brought' | 'saved', printed: string) =>
  new Set(
    [...printed.matchAll(/^(brought|saved) ([0-9a-f]{1,16})$/gm)].flatMap(([, word, id]) =>
      word === verb ? [id!] : [],
    ),
  )

export async function openWorkspace(options: WorkspaceOptions): Promise<Workspace> {
  const { sandbox, caches, build, directory, folders, limits, log, signal } = options
  const work = join(directory, 'work')
  const [tree, cache, borrowed] = [join(work, 'tree'), join(work, 'cache'), join(directory, 'borrowed')]
  const repository = { host: join(directory, 'git'), inside: repositoryInside }
  await mkdir(work, { mode: 0o755 })
  await sandbox.makeDirectory(tree)
  const taken = await caches.acquire(build, cache)
  const cacheInfo: CacheInfo | null = taken?.note ?? null
  const isOwn = taken?.own ?? false
  if (cacheInfo && !isOwn) await rename(cache, borrowed)
  if (!isOwn) {
    await mkdir(cache, { mode: 0o755 })
    await sandbox.makeDirectory(join(cache, 'downloads'))
    await sandbox.makeDirectory(join(cache, 'folders'))
  }

  const names = Object.fromEntries(folders.map(({ id, path }) => [`FOLDER_${id}`, path]))
  const environment = {
    ...names,
    HOME: '/tmp',
    WORK: workInside,
    FOLDERS: idsIn(folders),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
  }

  type RunOptions = Pick<SandboxedCommand, 'readOnly' | 'readStdout'> & { environment?: Record<string, string> }

  function start(script: string, extra: RunOptions, args: string[] = []) {
    let printed = ''
    const process = sandbox.run({
      argv: ['/bin/sh', '-c', script, 'berth', ...args],
      workTree: work,
      ...extra,
      environment: { ...environment, ...extra.environment },
      limits: { ...limits, timeoutMs: Math.min(limits.timeoutMs, 600_000) },
      onOutput(stream, chunk) {
        if (stream === 'stderr') log.output(stream, chunk)
        else printed = (printed + chunk).slice(-maxPrintedLength)
      },
    })
    const unlisten = onAbort(signal, process.kill)
    const exited = process.exited.finally(() => {
      unlisten()
      log.endCommand()
    })
    return { exited, kill: process.kill, printed: () => printed }
  }

  /** Runs a script and returns what it printed. */
  async function run(script: string, more: RunOptions, args?: string[]): Promise<[Exit, string]> {
    const { exited, printed } = start(script, more, args)
    return [await exited, printed()]
  }

  return {
    tree,
    downloads: { host: join(cache, 'downloads'), empty: !isOwn },
    repository,
    async fill(source, key) {
      const borrows = cacheInfo !== null && !isOwn
      const from = borrows ? `${borrowedInside}/folders` : cacheInfo ? `${workInside}/cache/folders` : ''
      const more = {
        readOnly: borrows ? [repository, { host: borrowed, inside: borrowedInside }] : [repository],
        environment: {
          ...(source.usesLfs ? lfsEnvironment() : {}),
          REPOSITORY: repositoryInside,
          COMMIT: source.commit,
          FROM: from,
          BRING: borrows ? 'cp -a' : 'mv',
        },
      }
      const modules = source.submodules.flatMap(({ path, commit }) => [asText(path), commit])
      const [exit, printed] = await run(FILL, more, modules).finally(
        () => borrows && caches.returnBorrowed(build, borrowed),
      )
      signal.throwIfAborted()
      if (exit.reason === 'timeout') throw new BuildFailure('build_timeout', 'The checkout took too long.')
      if (exit.reason === 'disk') throw new BuildFailure('build_out_of_disk', 'The repository is too large to build.')
      if (exit.code !== 0)
        throw new BuildFailure('clone_failed', 'The commit could not be checked out; the log says why.')
      const brought = idsOf('brought', printed)
      const needed = cacheInfo?.dependencies ?? ['0']
      return key !== null && cacheInfo?.key === key && needed.length > 0 && needed.every((id) => brought.has(id))
    },
    async prepareServerTree(selfContained, read) {
      const taken = folders.filter(({ onlyForBuilds }) => selfContained || onlyForBuilds)
      const list = Promise.withResolvers<Readable>()
      const { exited, kill } = start(SETTLE, { environment: { FOLDERS: idsIn(taken) }, readStdout: list.resolve })
      exited.catch(list.reject)
      try {
        const found = await read(await list.promise)
        const exit = await exited
        signal.throwIfAborted()
        if (exit.reason === 'timeout') throw new BuildFailure('output_too_large', 'The output took too long to read.')
        if (exit.reason === 'disk') throw new BuildFailure('build_out_of_disk', 'The output is too large.')
        if (exit.code !== 0) throw new SandboxError(`The output could not be read: ${JSON.stringify(exit)}`)
        return found
      } finally {
        // Unread output would keep the sandbox from ending.
        void list.promise.then((stream) => stream.destroy()).catch(() => {})
        await kill()
      }
    },
    saveCache: (key, published) =>
      caches.whileSaving(build, async () => {
        const moved = { environment: { FROM: `${workInside}/tree`, BRING: 'mv' } }
        const copied = (host: string) => ({
          environment: { FROM: publishedInside, BRING: 'nice cp -R -P --preserve=mode,timestamps,links' },
          readOnly: [{ host, inside: publishedInside }],
        })
        const [exit, printed] = await run(SAVE, published === undefined ? moved : copied(published))
        const kb = Number(/^kb (\d+)$/m.exec(printed)?.[1] ?? Number.NaN)
        if (exit.code !== 0 || Number.isNaN(kb)) return
        const saved = idsOf('saved', printed)
        const dependencies = folders.flatMap(({ id, isDependencies }) => (isDependencies && saved.has(id) ? [id] : []))
        await caches.store(build, cache, { key, dependencies, kb, usedAt: new Date().toISOString() })
      }),
  }
}
