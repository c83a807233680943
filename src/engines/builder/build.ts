// One build from commit to manifest: clone, install, build, publish. Every end of it is a reason.
import { cp, mkdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { Artifacts } from '../../artifacts.ts'
import type { Config } from '../../config.ts'
import type { Repositories } from '../../repositories.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import { privateHosts } from '../../sandbox-hosts.ts'
import { type Build, factsOf } from '../../services/builds.ts'
import { openCache } from './cache.ts'
import { BuildFailure, type FailureCode } from './failure.ts'
import type { BuildLog } from './log.ts'
import { findOutput, publishFiles } from './publish.ts'
import { type Recipe, readRecipe } from './recipe.ts'
import { fetchCommit } from './source.ts'
import { stepsOf } from './steps.ts'

export type BuildTools = {
  config: Config
  repositories: Repositories
  artifacts: Artifacts
  sandbox: Sandbox
  /** Address of the package registry, as npm of this machine names it. */
  packageRegistry: Promise<string>
}

type Command = { step: 'install' | 'build'; text: string; failure: FailureCode }

const maxProcesses = 512
const maxDiskMb = 4096

/**
 * Builds and publishes; calls `ready` when the manifest is in place, before the work tree is cleared away, which nobody
 * need wait for, and tells whether it is a server. The commit is known.
 */
export async function runBuild(
  tools: BuildTools,
  build: Build,
  variables: Record<string, string>,
  log: BuildLog,
  signal: AbortSignal,
  ready: (server: boolean) => Promise<void>,
): Promise<void> {
  const { config } = tools
  const workTree = join(config.dataDir, 'builds', build.id)
  const deadline = Date.now() + config.build.timeoutMs
  try {
    await rm(workTree, { recursive: true, force: true })
    const tree = join(workTree, 'source')
    log.step('clone')
    log.system(`Cloning ${build.repo} at ${build.commit.slice(0, 7)} (${build.ref})`)
    const fetching = AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, deadline - Date.now()))])
    const { searchPath } = config
    await fetchCommit(
      { url: tools.repositories.urlOf(build.repo), commit: build.commit, tree, searchPath, signal: fetching },
      log,
    ).catch((error) => {
      if (!signal.aborted && fetching.aborted) throw outOfTime(config)
      throw error
    })
    const root = await rootOf(tree, build.rootDirectory)
    const recipe = await readRecipe(root, build)
    if (recipe.install || recipe.build)
      await runCommands(tools, build, variables, recipe, { workTree, root, deadline }, log, signal)
    signal.throwIfAborted()
    log.step('publish')
    await (recipe.server ? publishServer(tools, build, root) : publishSite(tools, build, root, recipe, log))
    await ready(recipe.server)
  } finally {
    await rm(workTree, { recursive: true, force: true })
  }
}

async function rootOf(tree: string, rootDirectory: string | null): Promise<string> {
  if (rootDirectory === null) return tree
  const base = await realpath(tree)
  const root = await realpath(join(tree, rootDirectory)).catch(() => null)
  const inside = root !== null && (root === base || root.startsWith(base + sep)) && (await stat(root)).isDirectory()
  if (!inside) throw new BuildFailure('clone_failed', `The repository has no folder ${rootDirectory}.`)
  return root
}

async function runCommands(
  tools: BuildTools,
  build: Build,
  variables: Record<string, string>,
  recipe: Recipe,
  place: { workTree: string; root: string; deadline: number },
  log: BuildLog,
  signal: AbortSignal,
): Promise<void> {
  const cache = openCache(join(tools.config.dataDir, 'cache', build.projectId), place.root)
  const cached = await cache.restore(recipe.dependenciesKey)
  const commands: Command[] = []
  if (recipe.install) {
    log.step('install')
    if (cached === 'same') log.system('The lockfile is unchanged: dependencies are taken from the cache')
    else commands.push({ step: 'install', text: recipe.install, failure: 'install_failed' })
  }
  if (recipe.build) commands.push({ step: 'build', text: recipe.build, failure: 'build_failed' })
  if (commands.length > 0) {
    await runInSandbox(tools, build, variables, { ...place, downloads: cache.downloads, commands }, log, signal)
  }
  // A server project runs with its dependencies, so they stay where they are.
  if (!recipe.server) await cache.save(recipe.dependenciesKey)
}

async function runInSandbox(
  tools: BuildTools,
  build: Build,
  variables: Record<string, string>,
  task: { workTree: string; root: string; deadline: number; downloads: string; commands: Command[] },
  log: BuildLog,
  signal: AbortSignal,
): Promise<void> {
  const { config, sandbox } = tools
  const registry = await tools.packageRegistry
  let command = task.commands[0]!
  const begin = (next: Command) => {
    command = next
    log.step(next.step)
    log.system(`$ ${next.text}`)
  }
  begin(command)
  const allowPrivate = privateHosts(registry, config.gitUrlTemplate)
  let lostNames = false
  const steps = stepsOf(
    task.commands.map(({ text }) => text),
    (index) => {
      log.endCommand()
      begin(task.commands[index]!)
    },
    (chunk) => log.output('stdout', chunk),
  )
  const process = sandbox.run({
    argv: steps.argv,
    workTree: task.workTree,
    cwd: task.root.slice((await realpath(task.workTree)).length + 1),
    environment: {
      ...variables,
      CI: 'true',
      ...factsOf(config, build),
      HOME: '/tmp',
      npm_config_registry: registry,
      npm_config_cache: '/cache',
      // npm keeps what Node compiled of it, which takes 300 ms at its end and is gone with the sandbox.
      NODE_DISABLE_COMPILE_CACHE: '1',
      npm_config_update_notifier: 'false',
      npm_config_fund: 'false',
      npm_config_audit: 'false',
    },
    caches: [{ host: task.downloads, inside: '/cache' }],
    limits: {
      memoryMb: config.build.memoryMb,
      processes: maxProcesses,
      diskMb: maxDiskMb,
      timeoutMs: Math.max(1, task.deadline - Date.now()),
    },
    // A build starts Node a dozen times, and only the registry and the repository host could be fetched from.
    egress:
      build.buildNetwork === 'none'
        ? null
        : { allow: [], allowPrivate, nodeFetch: variables.NODE_USE_ENV_PROXY === '1' },
    onOutput(stream, chunk) {
      lostNames ||= chunk.includes('ENOTFOUND') || chunk.includes('EAI_AGAIN')
      if (stream === 'stdout') steps.heard(chunk)
      else log.output(stream, chunk)
    },
  })
  const cancel = () => void process.kill()
  signal.addEventListener('abort', cancel)
  const exit = await process.exited.finally(() => signal.removeEventListener('abort', cancel))
  steps.end()
  log.endCommand()
  signal.throwIfAborted()
  if (exit.reason === 'timeout') throw outOfTime(config)
  if (exit.reason === 'memory') {
    throw new BuildFailure(
      'build_out_of_memory',
      `${command.text} needed more than ${config.build.memoryMb} MB of memory.`,
    )
  }
  if (exit.reason === 'disk') {
    throw new BuildFailure('build_out_of_disk', `${command.text} wrote more than ${maxDiskMb} MB.`)
  }
  if (exit.code !== 0) {
    if (lostNames) log.system(`Builds reach ${allowPrivate.join(' and ')} alone, by HTTPS_PROXY.`)
    const how = exit.signal ? `was ended by ${exit.signal}` : `exited with ${exit.code}`
    throw new BuildFailure(command.failure, `${command.text} ${how}.`)
  }
}

function outOfTime(config: Config): BuildFailure {
  return new BuildFailure('build_timeout', `The build took longer than ${Math.round(config.build.timeoutMs / 1000)} s.`)
}

async function publishSite(
  tools: BuildTools,
  build: Build,
  root: string,
  recipe: Recipe,
  log: BuildLog,
): Promise<void> {
  const output = await findOutput(root, recipe.outputs)
  const files = await publishFiles(tools.artifacts, output)
  const { spaFallback, cleanUrls } = build
  await tools.artifacts.publish(build.id, { version: 1, kind: 'static', files, spaFallback, cleanUrls })
  log.system(`Published ${Object.keys(files).length} files`)
}

/** The tree of a server moves whole, with its dependencies; it is run from there. */
async function publishServer(tools: BuildTools, build: Build, root: string): Promise<void> {
  const directory = tools.artifacts.serverDirectory(build.id)
  await rm(directory, { recursive: true, force: true })
  await mkdir(dirname(directory), { recursive: true })
  // Another file system takes a copy.
  await rename(root, directory).catch(() => cp(root, directory, { recursive: true, verbatimSymlinks: true }))
  await rm(join(directory, '.git'), { recursive: true, force: true })
  const { spaFallback, cleanUrls } = build
  await tools.artifacts.publish(build.id, { version: 1, kind: 'node', files: {}, spaFallback, cleanUrls })
}
