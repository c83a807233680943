// One build from commit to manifest: fetch, install, build, publish. Every failure has a reason.
import { execFile } from 'node:child_process'
import { mkdir, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../config.ts'
import { type Artifacts, bytesOf, type Manifest } from '../../platform/artifacts.ts'
import type { Db } from '../../platform/database.ts'
import { syncFileSystems } from '../../platform/durable.ts'
import { type GitRemote, RemoteRefused, type RepositoryAccess } from '../../platform/git-remote.ts'
import { randomLabel } from '../../platform/ids.ts'
import { removeTree } from '../../platform/remove-tree.ts'
import type { Repositories } from '../../platform/repositories.ts'
import type { Urls } from '../../platform/urls.ts'
import type { Programs } from '../../sandbox/programs.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { Build } from '../../services/deployments/builds.ts'
import { readUploaded, type UploadedFile } from '../../services/deployments/sources.ts'
import { noteLost } from '../../services/uploads/uploads.ts'
import { type Caches, foldersOf } from './cache.ts'
import { type Command, maxDiskMb, openCommands, outOfTime } from './commands.ts'
import { projectsIn } from './detection/detect.ts'
import { checkTool, tellDetected } from './detection/telling.ts'
import type { Detected } from './detection/types.ts'
import { type Disk, DiskFull } from './disk.ts'
import { BuildFailure } from './failure.ts'
import { memberDirectories } from './libraries.ts'
import type { BuildLog } from './log.ts'
import { outputMissing, plainDirectory } from './output.ts'
import { openPacker, type Packer } from './pack.ts'
import { type Recipe, readRecipe } from './recipe.ts'
import { checkRules, warnOfServerRules } from './rules.ts'
import { moveTree, readList } from './server-tree.ts'
import { entriesOfSource, neverPublished, outputInSource, siteLimits, storeSite } from './site.ts'
import { openSource, refusedBy, unreachable } from './source.ts'
import { asText, type Source } from './source-tree.ts'
import { openStoredSource } from './stored-source.ts'
import { beforeInstall, type FetchedTools, fetchTools, scriptCommandOf } from './toolchain.ts'
import { lostOf, NotKept, openUploadedSource } from './uploaded-source.ts'
import { openWorkspace, type Workspace } from './workspace.ts'

export type BuildTools = {
  config: Config
  urls: Urls
  repositories: Repositories
  artifacts: Artifacts
  caches: Caches
  disk: Disk
  sandbox: Sandbox
  /** Address of the package registry, as npm of this machine names it. */
  packageRegistry: Promise<string>
  programs: Programs
  db: Db
}

/** What the edge serves now; `bytes` is its size, `files` is null for a server. */
export type Published = { server: boolean; bytes: number; files: number | null }

/** Hears the first line of the commit's message, and what the repository shows. */
type Hears = { cloned(message: string): Promise<void>; detected(detected: Detected): Promise<void> }

const sizeEveryMs = 500

type Task = {
  tools: BuildTools
  build: Build
  variables: Record<string, string>
  /** To the repository; no process but those that fetch it ever gets it. */
  access: RepositoryAccess | null
  /** Root directory of the project; empty, or without a slash at its end. */
  root: string
  /** The root directory as a path prefix: empty, or with a slash at its end. */
  prefix: string
  directory: string
  deadline: number
  log: BuildLog
  signal: AbortSignal
  /** Throws if another worker builds it by now. */
  requireHeld(): Promise<void>
}

/** What the attempts of a job work in, each in a folder of its own: removed when the job ends. */
export const buildDirectory = ({ dataDir }: Pick<Config, 'dataDir'>, name: string) => join(dataDir, 'builds', name)

/**
 * Builds and publishes a deployment whose commit is known. Calls `ready` when the manifest is in place: visitors need
 * not wait until the cache is saved and the directory removed.
 */
export async function runBuild(
  tools: BuildTools,
  given: Pick<Task, 'build' | 'variables' | 'access' | 'log' | 'signal' | 'requireHeld'> & Hears & { attempts: string },
  ready: (published: Published) => Promise<void>,
): Promise<void> {
  const { config } = tools
  const { build, variables, access, attempts, log, signal, requireHeld, cloned, detected } = given
  // Another worker may have taken over from this one, or this one from another that still runs.
  const directory = join(attempts, randomLabel(8))
  const deadline = Date.now() + config.build.timeoutMs
  // What is built already is sent from where it was built.
  const rootDirectory = build.upload?.prebuilt ? '.' : (build.rootDirectory ?? '.')
  const root = plainDirectory(rootDirectory).replace(/^\.$/, '')
  const prefix = root === '' ? '' : `${root}/`
  const disk = tools.disk.watch()
  let isReady = false
  const whenReady = async (published: Published) => {
    await ready(published)
    // What follows is not needed: it may fail, but ends no build.
    isReady = true
  }
  const either = AbortSignal.any([signal, disk.low])
  const where = { root, prefix, directory, deadline }
  const task: Task = { tools, build, variables, access, ...where, log, signal: either, requireHeld }
  try {
    const source = await fetchSource(task)
    try {
      await cloned(source.message)
      if (![...source.entries.keys()].some((path) => path.startsWith(prefix)) && root !== '')
        throw new BuildFailure('clone_failed', `The repository has no folder ${build.rootDirectory}.`)
      const read = await readRecipe(source, prefix, build)
      const recipe = build.upload?.prebuilt ? asTheyAre(read, build.framework === 'node') : read
      tellDetected(log, recipe)
      await detected(recipe.detected)
      await checkTool(recipe, config)
      if (recipe.server) warnOfServerRules(source, prefix, log)
      // Without commands, files are read from git's objects; no tree is checked out.
      if (!recipe.install && !recipe.build && !recipe.server && !source.usesLfs) {
        await whenReady(await publishSource(task, source, recipe))
      } else await buildInSandbox(task, source, recipe, whenReady)
    } finally {
      source.close()
    }
  } catch (error) {
    if (error instanceof NotKept) await noteLostFiles(task)
    if (signal.aborted || isReady || !(await disk.isCauseOf(error))) throw error
    throw new DiskFull('the disk of the platform is full', { cause: error })
  } finally {
    disk.stop()
    await removeAttempt(directory)
  }
}

/** Removes the folder of an attempt, and that of its job unless others are in it. */
async function removeAttempt(directory: string): Promise<void> {
  await removeTree(directory)
  await rmdir(dirname(directory)).catch(() => {})
}

/** Nothing is run before they are published, all of them; they are a server only where the project says so. */
const asTheyAre = (recipe: Recipe, server: boolean): Recipe => ({
  ...recipe,
  install: null,
  build: null,
  outputs: [{ path: '.', needsIndex: false }],
  dependenciesKey: null,
  selfContained: false,
  server,
  detected: {
    ...recipe.detected,
    ...(server ? {} : { kind: 'files', startCommand: null }),
    ...{ packageManager: null, buildCommand: null, output: '.' },
    because: ['The files were built before they were sent.'],
  },
})

async function fetchSource(task: Task): Promise<Source> {
  const { tools, build, access, log } = task
  log.step('clone')
  // A server is run from a tree that is checked out.
  if (build.upload?.prebuilt && build.framework !== 'node')
    return openStoredSource(tools.artifacts, await uploaded(task), task.signal)
  await mkdir(join(task.directory, 'git'), { recursive: true, mode: 0o755 })
  if (build.upload) return openUploaded(task)
  if (build.repo === '') throw new BuildFailure('repository_unreachable', 'The project has no repository.')
  log.system(`Cloning ${build.repo} at ${build.commit.slice(0, 7)} (${build.ref})`)
  const remote = await tools.repositories.open(build.repo, access).catch((error) => {
    if (!(error instanceof RemoteRefused)) throw error
    throw error.refusal === 'unreachable' ? unreachable(build.repo) : refusedBy(build.repo, error.refusal)
  })
  // Whatever the build does, it begins after the access is gone.
  return fetchFrom(task, remote).finally(remote.close)
}

async function fetchFrom({ tools, build, directory, deadline, log, signal }: Task, remote: GitRemote): Promise<Source> {
  const { config } = tools
  const full = new AbortController()
  const timeout = AbortSignal.timeout(Math.max(1, deadline - Date.now()))
  const fetching = AbortSignal.any([signal, timeout, full.signal])
  const options = {
    url: remote.url,
    urlTemplate: remote.own ? config.gitUrlTemplate : remote.url,
    remote,
    commit: build.commit,
    directory: join(directory, 'git'),
    searchPath: config.searchPath,
    signal: fetching,
  }
  const watch = watchSize(options.directory, maxDiskMb, () => full.abort())
  return openSource(options, log)
    .catch((error) => {
      if (signal.aborted) throw error
      if (full.signal.aborted)
        throw new BuildFailure('build_out_of_disk', `The repository is larger than ${maxDiskMb} MB.`)
      if (timeout.aborted) throw outOfTime(config)
      throw error
    })
    .finally(() => watch.stop())
}

async function uploaded({ tools, build, log }: Task): Promise<UploadedFile[]> {
  const files = await readUploaded(tools.db, build.id)
  if (!files) throw new NotKept()
  log.system(`Taking ${files.length} uploaded ${files.length === 1 ? 'file' : 'files'}`)
  return files
}

/** The files that were sent, as a commit: from there on they are built as any other. */
async function openUploaded(task: Task): Promise<Source> {
  const { tools, directory, signal } = task
  const files = await uploaded(task)
  const options = { directory: join(directory, 'git'), searchPath: tools.config.searchPath, signal }
  return openUploadedSource(tools.artifacts, files, options)
}

/** Whoever sends these files again is asked for those that are lost. */
async function noteLostFiles({ tools, build, signal }: Task): Promise<void> {
  const files = (await readUploaded(tools.db, build.id)) ?? []
  await noteLost(tools.db, await lostOf(tools.artifacts, files, signal))
}

/** The limit per file does not bound the sum of packs, submodules and Git LFS files. */
function watchSize(directory: string, mostMb: number, onExceeded: () => void): { stop(): void } {
  const timer = setInterval(() => {
    execFile('du', ['-s', '-k', '--', directory], (_error, stdout) => {
      if (Number.parseInt(stdout, 10) > mostMb * 1024) onExceeded()
    })
  }, sizeEveryMs)
  return { stop: () => clearInterval(timer) }
}

async function buildInSandbox(
  task: Task,
  source: Source,
  recipe: Recipe,
  ready: (published: Published) => Promise<void>,
): Promise<void> {
  const { tools, build, prefix, directory, log, signal } = task
  const { config, sandbox, caches } = tools
  const limits = {
    memoryMb: config.build.memoryMb,
    processes: 64,
    diskMb: maxDiskMb,
    timeoutMs: timeLeft(task),
  }
  const { manager } = recipe
  const fetched = await fetchTools(tools.programs, manager, recipe.node)
  if (fetched.warning !== null) log.system(fetched.warning)
  const members = manager && manager.directory !== prefix ? memberDirectories(source, manager) : []
  const folders = foldersOf(prefix, members).map((one) => ({ ...one, path: asText(one.path) }))
  const workspace = await openWorkspace({ sandbox, caches, build, directory, folders, limits, log, signal })
  let key: string | null = null
  let moved: number | null = null
  // Each sandbox is opened in parallel with the step before it.
  const closers: (() => Promise<void>)[] = []
  const opened = <T extends { close(): Promise<void> }>(one: T): T => {
    closers.push(one.close)
    return one
  }
  try {
    const registry = await tools.packageRegistry
    const running =
      recipe.install || recipe.build
        ? opened(openCommands({ ...tools, ...task, ...fetched, registry, manager, workspace }))
        : null
    const cached = await workspace.fill(source, recipe.dependenciesKey)
    const packer = recipe.server
      ? null
      : opened(openPacker({ sandbox, tree: workspace.tree, timeoutMs: timeLeft(task), signal }))
    const commands = commandsOf(recipe, cached, registry, log)
    // Most of a server's tree is there before its build, which leaves a processor idle when it begins.
    const begins = ({ step }: Command) => step === 'build' && recipe.server && writeOut(task, workspace)
    if (commands.length > 0) await running?.run(commands, begins)
    signal.throwIfAborted()
    log.step('publish')
    if (!packer) moved = await layOut(task, workspace, recipe)
    key = recipe.dependenciesKey
    const published = packer
      ? await publishSite(task, source, packer, recipe)
      : await publishServer(task, { ...fetched, manager, bytes: moved ?? 0 })
    await ready(published)
  } finally {
    await Promise.all(closers.map((close) => close()))
    // A canceled build keeps nothing; a failed one keeps its downloads for the next try.
    if (!signal.aborted) await saveCache(task, workspace, key, moved).catch(() => {})
  }
}

/** What a server runs from, of so many bytes, is copied, because a build may change what is cached. */
async function saveCache({ tools, build }: Task, workspace: Workspace, key: string | null, moved: number | null) {
  if (moved === null || !(await tools.disk.hasRoomFor(moved))) return workspace.saveCache(key)
  // Without a manifest, it is where it was laid out.
  const laidOut = { directory: tools.artifacts.serverDirectory(build.id), release() {} }
  const tree = await tools.artifacts.openTree(build.id).catch(() => laidOut)
  await workspace.saveCache(key, tree.directory).finally(tree.release)
}

function commandsOf(recipe: Recipe, cached: boolean, registry: string, log: BuildLog): Command[] {
  const { manager } = recipe
  const commands: Command[] = []
  if (recipe.install && cached) {
    log.step('install')
    log.system('The lockfile is unchanged: dependencies are taken from the cache')
  } else if (recipe.install) {
    const where = manager && { directory: asText(manager.directory), before: beforeInstall(manager, registry) }
    commands.push({ step: 'install', text: recipe.install, failure: 'install_failed', ...where })
  }
  for (const directory of recipe.libraries) {
    const text = scriptCommandOf(manager, 'build')
    commands.push({ step: 'build', text, failure: 'build_failed', directory: asText(directory) })
  }
  if (recipe.build) commands.push({ step: 'build', text: recipe.build, failure: 'build_failed' })
  return commands
}

async function missingFrom({ build, prefix }: Task, source: Source, recipe: Recipe, names: string[]) {
  // Nobody who has set what is published meant another folder.
  const isOpen = build.framework === 'auto' && build.outputDirectory === null
  const apps = isOpen ? await projectsIn(source, prefix) : []
  return outputMissing(recipe.outputs, { names, apps }, recipe, build)
}

async function publishSource(task: Task, source: Source, recipe: Recipe): Promise<Published> {
  const { prefix, log } = task
  log.step('publish')
  const output = outputInSource(source, prefix, recipe.outputs)
  if ('missing' in output) throw await missingFrom(task, source, recipe, output.missing)
  return publishFiles(task, await storeSite(task.tools.artifacts, entriesOfSource(source, output), '/build'))
}

async function publishSite(task: Task, source: Source, packer: Packer, recipe: Recipe): Promise<Published> {
  const plan = { root: task.root, candidates: recipe.outputs, without: neverPublished }
  const files = await packer.pack(plan, siteLimits, async (packed) => {
    if ('missing' in packed.output) throw await missingFrom(task, source, recipe, packed.output.missing)
    return storeSite(task.tools.artifacts, packed.entries(), packed.output.inside)
  })
  return publishFiles(task, files)
}

async function publishFiles({ tools, build, log, requireHeld }: Task, files: Manifest['files']): Promise<Published> {
  const { spaFallback, cleanUrls } = build
  await checkRules(tools.artifacts, files, log)
  await requireHeld()
  await tools.artifacts.publish(build.id, { version: 1, kind: 'static', files, spaFallback, cleanUrls })
  log.system(`Published ${Object.keys(files).length} files`)
  return { server: false, bytes: bytesOf(files), files: Object.keys(files).length }
}

type Built = Pick<FetchedTools, 'node'> & Pick<Recipe, 'manager'>

/** What its server runs with; npm is that of the machine. */
function programsOf({ node, manager }: Built): Pick<Manifest, 'node' | 'manager'> {
  const { name = 'npm', version = null } = manager ?? {}
  return { ...(node && { node }), ...(name !== 'npm' && version !== null && { manager: { name, version } }) }
}

/**
 * The whole tree with its dependencies, which may be above the root directory, unless the build has copied them. It is
 * moved: to copy a node_modules takes seconds. Returns its size.
 */
async function layOut(task: Task, workspace: Workspace, { selfContained }: Recipe): Promise<number> {
  const { tools, build } = task
  writeOut(task, workspace)
  const { bytes } = await workspace.settle(selfContained, readList)
  await task.requireHeld()
  await moveTree(workspace.tree, tools.artifacts.serverDirectory(build.id))
  return bytes
}

/** What is published has to be on the disk. The writing begins before it is waited for, in the end. */
function writeOut({ tools }: Task, { tree }: Workspace): void {
  if (!tools.artifacts.shared) void syncFileSystems([tree])
}

async function publishServer(
  { tools, build, root, requireHeld }: Task,
  built: Built & { bytes: number },
): Promise<Published> {
  const { spaFallback, cleanUrls } = build
  const settings = { files: {}, spaFallback, cleanUrls }
  const manifest = { version: 1, kind: 'node', root, ...settings, ...programsOf(built) } as const
  await requireHeld()
  await tools.artifacts.publish(build.id, manifest)
  return { server: true, bytes: built.bytes, files: null }
}

const timeLeft = ({ deadline }: Task) => Math.max(1, deadline - Date.now())
