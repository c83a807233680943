// Runs one build from commit to manifest: fetch, install, build, publish.
import { rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../../config.ts'
import { removeTree } from '../../../platform/files/remove-tree.ts'
import { randomLabel } from '../../../platform/ids.ts'
import { type Recipe, readRecipe } from '../detection/recipe.ts'
import { checkTool, logDetected } from '../detection/report.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import { openPacker } from '../output/pack.ts'
import { moveServerTree, publishServer, publishSite, publishSource, startSync } from '../output/publish.ts'
import { warnOfServerRules } from '../output/rules.ts'
import { memberDirectories } from '../project/libraries.ts'
import { plainDirectory } from '../project/output.ts'
import { reasonOf } from '../project/single-page.ts'
import { beforeInstall, fetchTools, scriptCommandOf } from '../project/toolchain.ts'
import type { Detected } from '../project/types.ts'
import { foldersOf } from '../run/cache.ts'
import { type Command, maxDiskMb, openCommands } from '../run/commands.ts'
import { DiskFull } from '../run/disk.ts'
import { type BuildTools, type Published, type Task, timeLeft } from '../run/task.ts'
import { openWorkspace, type Workspace } from '../run/workspace.ts'
import { fetchSource, recordLostFiles } from '../source/fetch-source.ts'
import { UploadLost } from '../source/uploaded-source.ts'
import { asText, type Source } from '../tree/source-tree.ts'

/** Receives the first line of the commit message, and what was detected. */
type BuildEvents = { onCloned(message: string): Promise<void>; onDetected(detected: Detected): Promise<void> }

/** The directory for a job's attempts, each in its own folder; removed when the job ends. */
export const buildDirectory = ({ dataDir }: Pick<Config, 'dataDir'>, name: string) => join(dataDir, 'builds', name)

/**
 * Builds and publishes a deployment whose commit is known. Calls `ready` once the manifest is in place, so that visitors
 * needn't wait for the cache and the cleanup.
 */
export async function runBuild(
  tools: BuildTools,
  options: Pick<Task, 'build' | 'variables' | 'access' | 'log' | 'signal' | 'requireHeld'> &
    BuildEvents & { attempts: string },
  ready: (published: Published) => Promise<void>,
): Promise<void> {
  const { config } = tools
  const { build, variables, access, attempts, log, signal, requireHeld, onCloned, onDetected } = options
  // A folder of its own, because another worker may still be running an attempt.
  const directory = join(attempts, randomLabel(8))
  const deadline = Date.now() + config.build.timeoutMs
  // Prebuilt files are uploaded relative to where they were built.
  const rootDirectory = build.upload?.prebuilt ? '.' : (build.rootDirectory ?? '.')
  const root = plainDirectory(rootDirectory).replace(/^\.$/, '')
  const prefix = root === '' ? '' : `${root}/`
  const disk = tools.disk.watch()
  let isReady = false
  const whenReady = async (published: Published) => {
    await ready(published)
    // Later failures don't matter.
    isReady = true
  }
  const either = AbortSignal.any([signal, disk.low])
  const location = { root, prefix, directory, deadline }
  const task: Task = { tools, build, variables, access, ...location, log, signal: either, requireHeld }
  try {
    const source = await fetchSource(task)
    try {
      await onCloned(source.message)
      if (![...source.entries.keys()].some((path) => path.startsWith(prefix)) && root !== '')
        throw new BuildFailure('clone_failed', `The repository has no folder ${build.rootDirectory}.`)
      const read = await readRecipe(source, prefix, build)
      const recipe = build.upload?.prebuilt ? prebuiltRecipe(read, build.framework === 'node') : read
      logDetected(log, recipe)
      await onDetected(recipe.detected)
      const whenPublished = async (published: Published) => {
        if (recipe.detected.spaFallback && !published.spaFallback) await onDetected(withoutSinglePage(recipe.detected))
        await whenReady(published)
      }
      await checkTool(recipe, config)
      if (recipe.server) warnOfServerRules(source, prefix, log)
      // Without commands, files are read from git's objects without a checkout.
      if (!recipe.install && !recipe.build && !recipe.server && !source.usesLfs) {
        await whenPublished(await publishSource(task, source, recipe))
      } else await buildInSandbox(task, source, recipe, whenPublished)
    } finally {
      source.close()
    }
  } catch (error) {
    if (error instanceof UploadLost) await recordLostFiles(task)
    if (signal.aborted || isReady || !(await disk.isCauseOf(error))) throw error
    throw new DiskFull('the disk of the platform is full', { cause: error })
  } finally {
    disk.stop()
    await removeAttempt(directory)
  }
}

/** For output with a 404.html or without an index.html. */
function withoutSinglePage({ because, ...detected }: Detected): Detected {
  const why = 'The output has its own page for unknown paths, or no index.html, so it is served as is.'
  return { ...detected, spaFallback: false, because: [...because, why] }
}

/** Removes an attempt's folder, and its job's folder if that is empty. */
async function removeAttempt(directory: string): Promise<void> {
  await removeTree(directory)
  await rmdir(dirname(directory)).catch(() => {})
}

/** Prebuilt files are published without running anything. They are a server only if the project says so. */
const prebuiltRecipe = (recipe: Recipe, server: boolean): Recipe => ({
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
    because: [
      'The files were built before they were uploaded.',
      ...(recipe.detected.spaFallback ? [reasonOf(recipe.detected.framework)] : []),
    ],
  },
})

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
  let movedBytes: number | null = null
  // Each sandbox opens while the previous step runs.
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
    // Most of a server's tree exists before its build, so syncing it early uses idle time.
    const begins = ({ step }: Command) => step === 'build' && recipe.server && startSync(task, workspace)
    if (commands.length > 0) await running?.run(commands, begins)
    signal.throwIfAborted()
    log.step('publish')
    if (!packer) movedBytes = await moveServerTree(task, workspace, recipe)
    key = recipe.dependenciesKey
    const published = packer
      ? await publishSite(task, source, packer, recipe)
      : await publishServer(task, { ...fetched, manager, bytes: movedBytes ?? 0 })
    await ready(published)
  } finally {
    await Promise.all(closers.map((close) => close()))
    // A canceled build saves nothing; a failed one saves its downloads for the next attempt.
    if (!signal.aborted) await saveCache(task, workspace, key, movedBytes).catch(() => {})
  }
}

/** Copies the server's tree into the cache instead of linking it, because later builds may change the cache. */
async function saveCache({ tools, build }: Task, workspace: Workspace, key: string | null, moved: number | null) {
  if (moved === null || !(await tools.disk.hasRoomFor(moved))) return workspace.saveCache(key)
  // Without a manifest, the tree is still at its directory.
  const laidOut = { directory: tools.artifacts.serverDirectory(build.id), release() {} }
  const tree = await tools.artifacts.openTree(build.id).catch(() => laidOut)
  await workspace.saveCache(key, tree.directory).finally(tree.release)
}

function commandsOf(recipe: Recipe, cached: boolean, registry: string, log: BuildLog): Command[] {
  const { manager } = recipe
  const commands: Command[] = []
  if (recipe.install && cached) {
    log.step('install')
    log.system('The lockfile is unchanged: using cached dependencies')
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
