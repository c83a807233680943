// Runs the customer's install and build commands in one sandbox.
import type { Config } from '../../../config.ts'
import { onAbort } from '../../../platform/abort.ts'
import type { Urls } from '../../../platform/http/urls.ts'
import { privateHosts } from '../../../sandbox/network/hosts.ts'
import type { Exit, MountedProgram, Sandbox } from '../../../sandbox/sandbox.ts'
import { type Build, buildFacts } from '../../../services/deployments/index.ts'
import { BuildFailure, CommandKilled, type FailureCode } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import { downloadsInside, managerEnvironment } from '../project/toolchain.ts'
import type { PackageManager } from '../project/types.ts'
import { createSteps, quote, type Steps, stepsArgv } from './steps.ts'
import type { Workspace } from './workspace.ts'

export type Command = {
  step: 'install' | 'build'
  text: string
  failure: FailureCode
  /** Where it runs, relative to the tree: empty, or with a trailing slash. Default: the root directory. */
  directory?: string
  /** A hidden command to run first. */
  before?: string | null
}

export type CommandsOptions = {
  config: Config
  urls: Urls
  sandbox: Sandbox
  build: Build
  variables: Record<string, string>
  /** URL of the package registry, from this machine's npm. */
  registry: string
  /** Null: this machine's npm. */
  manager: PackageManager | null
  programs: MountedProgram[]
  workspace: Workspace
  /** The project's root directory, relative to the tree. */
  root: string
  deadline: number
  log: BuildLog
  signal: AbortSignal
}

const maxProcesses = 512
export const maxDiskMb = 4096

export type Commands = {
  /** Runs one or more commands in order; rejects at the first failure. May be called once. */
  run(commands: Command[], onBegin?: (command: Command) => void): Promise<void>
  close(): Promise<void>
}

/** Opens the sandbox while the tree is still being filled, because that takes 150 ms with a network. */
export function openCommands(options: CommandsOptions): Commands {
  const { config, urls, sandbox, build, variables, registry, workspace, log, signal } = options
  const script = Promise.withResolvers<string>()
  let steps: Steps | undefined
  const process = sandbox.run({
    argv: stepsArgv,
    input: script.promise,
    workTree: workspace.tree,
    environment: {
      ...variables,
      CI: 'true',
      ...buildFacts(urls, build),
      HOME: '/tmp',
      npm_config_registry: registry,
      npm_config_cache: downloadsInside,
      npm_config_update_notifier: 'false',
      npm_config_fund: 'false',
      npm_config_audit: 'false',
      ...managerEnvironment(options.manager, registry),
    },
    caches: [{ ...workspace.downloads, inside: downloadsInside }],
    programs: options.programs,
    readOnly: [workspace.repository],
    limits: {
      memoryMb: config.build.memoryMb,
      processes: maxProcesses,
      diskMb: maxDiskMb,
      timeoutMs: Math.max(1, options.deadline - Date.now()),
    },
    network:
      build.buildNetwork === 'none'
        ? null
        : { reach: build.buildNetwork, private: privateHosts(registry, config.gitUrlTemplate) },
    onOutput(stream, chunk) {
      if (stream === 'stdout') steps?.receive(chunk)
      else log.output(stream, chunk)
    },
  })
  const exited = process.exited.finally(onAbort(signal, process.kill))
  exited.catch(() => {})
  return {
    async run(commands, begins = () => {}) {
      let command = commands[0]!
      const begin = (next: Command) => {
        command = next
        log.step(next.step)
        log.system(`${locationOf(next, options.root)}$ ${next.text}`)
        begins(next)
      }
      begin(command)
      steps = createSteps(
        options.root,
        commands.map((command) => scriptOf(command, options.root)),
        (index) => {
          log.endCommand()
          begin(commands[index]!)
        },
        (chunk) => log.output('stdout', chunk),
      )
      script.resolve(steps.script)
      const exit = await exited
      steps.end()
      log.endCommand()
      signal.throwIfAborted()
      checkExit(exit, command, options)
    },
    close: () => process.kill(),
  }
}

/** Shown before a command; empty for the root directory. */
function locationOf({ directory }: Command, root: string): string {
  if (directory === undefined || directory === (root === '' ? '' : `${root}/`)) return ''
  return `${directory === '' ? '/' : directory.slice(0, -1)} `
}

// Writing its compile cache costs npm 300 ms for nothing, while bundlers with workers benefit from one.
const withoutCompileCache = 'export NODE_DISABLE_COMPILE_CACHE=1'

/** The script starts in the root directory. */
function scriptOf({ step, text, directory, before }: Command, root: string): string {
  const up = root === '' ? './' : '../'.repeat(root.split('/').length)
  const enter = directory === undefined ? [] : [`cd ${quote(up + directory)} || exit`]
  const prepare = step === 'install' ? [withoutCompileCache] : []
  return [...enter, ...prepare, ...(before ? [before] : []), text].join('\n')
}

function checkExit(exit: Exit, command: Command, { config, sandbox, build, registry }: CommandsOptions): void {
  if (exit.reason === 'timeout') throw outOfTime(config)
  if (exit.reason === 'memory') {
    throw new BuildFailure(
      'build_out_of_memory',
      `${command.text} needed more than the ${config.build.memoryMb} MB of memory available to a build. The operator can raise BUILD_MEMORY_MB.`,
    )
  }
  if (exit.reason === 'disk') {
    throw new BuildFailure('build_out_of_disk', `${command.text} wrote more than ${maxDiskMb} MB.`)
  }
  if (exit.signal === 'SIGKILL') {
    const killed = `${command.text} was killed (SIGKILL)`
    const cause = sandbox.tellsOutOfMemory
      ? 'It did not run out of memory: check what kills processes in the build.'
      : `It may have run out of memory, which this machine can't tell. A build gets ${config.build.memoryMb} MB (BUILD_MEMORY_MB).`
    const failure = new BuildFailure(command.failure, `${killed}, and again when we retried it. ${cause}`)
    throw new CommandKilled(`${killed}. A build that is killed is retried once.`, failure)
  }
  if (exit.code !== 0) {
    const how = exit.signal ? `was terminated by ${exit.signal}` : `exited with ${exit.code}`
    const access = { network: build.buildNetwork, hosts: privateHosts(registry, config.gitUrlTemplate) }
    throw new BuildFailure(command.failure, `${command.text} ${how}`, { step: command.step, access })
  }
}

export function outOfTime(config: Config): BuildFailure {
  return new BuildFailure('build_timeout', `The build took longer than ${Math.round(config.build.timeoutMs / 1000)} s.`)
}
