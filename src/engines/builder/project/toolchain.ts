// Package managers: their versions, install commands and settings.
import { createHash } from 'node:crypto'
import { isBerry, managerProgram } from '../../../sandbox/programs/managers.ts'
import { hasGlibc, hostNode, type NodeMajor, nodeProgram } from '../../../sandbox/programs/node-versions.ts'
import { isExactVersion, type Program, type Programs, ProgramUnavailable } from '../../../sandbox/programs/programs.ts'
import type { MountedProgram } from '../../../sandbox/sandbox.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { Source } from '../tree/source-tree.ts'
import type { ManagerName, PackageManager } from './types.ts'

/** Mount point of a project's downloads, which are cached between builds. */
export const downloadsInside = '/cache'

/** The version for each lockfile format if `packageManager` names none; the first match wins. */
const versions: Record<Exclude<ManagerName, 'npm'>, [lockfile: RegExp, version: string][]> = {
  pnpm: [
    [/^lockfileVersion: *'?5\.[0-3]\b/m, '6.35.1'],
    [/^lockfileVersion: *'?5\b/m, '7.33.7'],
    [/^lockfileVersion: *'?6\b/m, '8.15.9'],
    [/(?:)/, '10.34.9'],
  ],
  yarn: [
    [/^# yarn lockfile v1$/m, '1.22.22'],
    [/^__metadata:\r?\n {2}version: *"?[1-4]\b/m, '2.4.2'],
    [/^__metadata:\r?\n {2}version: *"?[5-7]\b/m, '3.8.7'],
    [/^__metadata:/m, '4.18.1'],
    [/(?:)/, '1.22.22'],
  ],
  bun: [[/(?:)/, '1.4.4']],
}

const maxLockfileLength = 64 << 20
const maxSettingsLength = 1 << 16

/** A package manager with a known version. A null `program` is this machine's npm. */
export type ChosenManager = PackageManager & { program: Program | null }

/** Reads the lockfile if no version is given. An unreadable one counts as the newest format. */
export async function chooseManager(source: Source, manager: PackageManager): Promise<ChosenManager> {
  const { name, lockfile } = manager
  const named = manager.version !== null && isExactVersion(manager.version) ? manager.version : null
  if (name === 'npm')
    return { ...manager, version: named, program: named ? managerProgram({ name, version: named }) : null }
  // All formats are recognizable from the first lines. The rest may be crafted to make searching slow.
  const text =
    named || !lockfile ? '' : ((await source.text(lockfile, maxLockfileLength)) ?? '').slice(0, maxSettingsLength)
  const version = named ?? versions[name].find(([form]) => form.test(text))![1]
  const isDefault = versions[name].some(([, one]) => one === version)
  return {
    ...manager,
    version,
    program: { ...managerProgram({ name, version }), ...(isDefault ? { pinned: true } : {}) },
  }
}

/** Freezes an existing lockfile. Runs in `manager.directory`. */
export function installCommandOf({ name, version, lockfile }: PackageManager): string {
  const frozen = lockfile !== null
  switch (name) {
    case 'pnpm':
      return `pnpm install ${frozen ? '--frozen-lockfile' : '--no-frozen-lockfile'}`
    case 'yarn':
      if (isBerry(version)) return `yarn install ${frozen ? '--immutable' : '--no-immutable'}`
      return `yarn install --non-interactive${frozen ? ' --frozen-lockfile' : ''}`
    case 'bun':
      return `bun install${frozen ? ' --frozen-lockfile' : ''}`
    // Not `npm ci`, which refuses lockfiles that lack this platform's optional packages.
    case 'npm':
      return 'npm install --no-audit --no-fund'
  }
}

/** Runs a script of package.json. `script` is trusted. */
export const scriptCommandOf = (manager: Pick<PackageManager, 'name'> | null, script: string) =>
  `${manager?.name ?? 'npm'} run ${script}`

/** By default, Yarn 2 and later don't unpack packages, so only programs started by Yarn find them. */
export async function usesPlugAndPlay(source: Source, { name, version, directory }: PackageManager): Promise<boolean> {
  if (name !== 'yarn' || !isBerry(version)) return false
  const settings = await source.text(`${directory}.yarnrc.yml`, maxSettingsLength)
  return !/^nodeLinker:\s*["']?(node-modules|pnpm)\b/m.test(settings ?? '')
}

/** Makes Yarn run one of our own commands. */
export const byYarn = (command: string): string =>
  command
    .replace(/(^|&& )npx --no-install /g, '$1yarn ')
    .replace(/^npm (start|run) ?/, 'yarn run $1 ')
    .replace(/^yarn run run /, 'yarn run ')
    .replace(/^node /, 'yarn node ')
    .trim()

/**
 * A hidden command before the install command. Yarn 1 ignores the configured registry and fetches from the URLs in its
 * lockfile, whose hosts a closed network can't reach.
 */
export function beforeInstall({ name, version, lockfile, directory }: PackageManager, registry: string): string | null {
  if (name !== 'yarn' || isBerry(version) || lockfile !== `${directory}yarn.lock`) return null
  const { origin, pathname } = new URL(registry)
  const to = `${origin}${pathname.replace(/[^\w./%~-]/g, '').replace(/\/$/, '')}/`
  return `[ -L yarn.lock ] || sed -i 's#https*://registry\\.yarnpkg\\.com/#${to}#; s#https*://registry\\.npmjs\\.org/#${to}#' yarn.lock`
}

/** Sets the registry and the download cache, and turns off checks of the manager's own version. */
export function managerEnvironment(manager: PackageManager | null, registry: string): Record<string, string> {
  const usedInstead: Record<string, string> = {
    COREPACK_NPM_REGISTRY: registry.replace(/\/$/, ''),
    COREPACK_ENABLE_STRICT: '0',
  }
  if (manager?.name === 'pnpm') {
    // pnpm up to version 10 reads the first name, later versions the second.
    const settings = {
      store_dir: `${downloadsInside}/pnpm`,
      cache_dir: `${downloadsInside}/pnpm-cache`,
      manage_package_manager_versions: 'false',
    }
    for (const [name, value] of Object.entries(settings)) {
      usedInstead[`npm_config_${name}`] = value
      usedInstead[`pnpm_config_${name}`] = value
    }
    usedInstead.pnpm_config_registry = registry
    usedInstead.pnpm_config_pm_on_fail = 'ignore'
  }
  if (manager?.name === 'yarn' && !isBerry(manager.version)) {
    usedInstead.YARN_REGISTRY = registry
    usedInstead.YARN_CACHE_FOLDER = `${downloadsInside}/yarn`
    usedInstead.YARN_DISABLE_SELF_UPDATE_CHECK = 'true'
  } else if (manager?.name === 'yarn') {
    usedInstead.YARN_NPM_REGISTRY_SERVER = registry.replace(/\/$/, '')
    usedInstead.YARN_GLOBAL_FOLDER = `${downloadsInside}/yarn`
    // Packed packages must be in the tree, or a server would lack them.
    usedInstead.YARN_ENABLE_GLOBAL_CACHE = 'false'
    usedInstead.YARN_ENABLE_TELEMETRY = '0'
    if (registry.startsWith('http:')) usedInstead.YARN_UNSAFE_HTTP_WHITELIST = new URL(registry).hostname
  }
  if (manager?.name === 'bun') {
    usedInstead.BUN_CONFIG_REGISTRY = registry
    usedInstead.BUN_INSTALL_CACHE_DIR = `${downloadsInside}/bun`
  }
  return usedInstead
}

/** Cached dependencies are valid for the same lockfile, command, package manager and Node. */
export function dependenciesKeyOf(
  lockfileHash: string,
  command: string,
  manager: PackageManager,
  node: NodeMajor,
): string {
  const version = manager.version ?? ''
  const nodeVersion = node === hostNode ? process.version : nodeProgram(node).version
  const facts = [nodeVersion, process.arch, `${manager.name}@${version}`, manager.directory, command, lockfileHash]
  return createHash('sha256').update(facts.join('\n')).digest('hex')
}

export type FetchedTools = {
  programs: MountedProgram[]
  /** Null: the machine's own Node, which isn't a supported version. */
  node: NodeMajor | null
  warning: string | null
}

/** Fails without the package manager. Without the requested Node, uses the machine's own. */
export async function fetchTools(
  programs: Programs,
  manager: ChosenManager | null,
  node: NodeMajor,
): Promise<FetchedTools> {
  const opened: MountedProgram[] = []
  let warning: string | null = null
  let actualNode: NodeMajor | null = node
  const own = `the build runs on Node ${process.versions.node}.`
  if (node !== hostNode && !hasGlibc()) {
    warning = `Node ${node} is not available on this machine: ${own}`
    actualNode = hostNode
  } else if (node !== hostNode) {
    await programs.open(nodeProgram(node)).then(
      (program) => opened.push(program),
      (error) => {
        if (!(error instanceof ProgramUnavailable)) throw error
        warning = `${error.message} So ${own}`
        actualNode = hostNode
      },
    )
  }
  if (manager?.program) {
    const program = await programs.open(manager.program).catch((error) => {
      if (!(error instanceof ProgramUnavailable)) throw error
      throw new BuildFailure('install_failed', error.message)
    })
    opened.push(program)
  }
  return { programs: opened, node: actualNode, warning }
}
