// Package managers: which version runs, how it installs what the lockfile says, and what it has to be told.
import { createHash } from 'node:crypto'
import { isBerry, managerProgram } from '../../../sandbox/programs/managers.ts'
import { hasGlibc, hostNode, type NodeMajor, nodeProgram } from '../../../sandbox/programs/node-versions.ts'
import { isExactVersion, type Program, type Programs, ProgramUnavailable } from '../../../sandbox/programs/programs.ts'
import type { MountedProgram } from '../../../sandbox/sandbox.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { Source } from '../tree/source-tree.ts'
import type { ManagerName, PackageManager } from './types.ts'

/** Where the downloads of a project are mounted, which are kept between its builds. */
export const downloadsInside = '/cache'

/** The version for each form of a lockfile, where `packageManager` names none; the first pattern that matches. */
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

/** A package manager whose version is known; null is the npm of this machine. */
export type ChosenManager = PackageManager & { program: Program | null }

/** Reads the lockfile, if the version is not given; one that cannot be read is taken for the newest form. */
export async function chooseManager(source: Source, manager: PackageManager): Promise<ChosenManager> {
  const { name, lockfile } = manager
  const named = manager.version !== null && isExactVersion(manager.version) ? manager.version : null
  if (name === 'npm')
    return { ...manager, version: named, program: named ? managerProgram({ name, version: named }) : null }
  // All of them tell their form in their first lines; the rest may be long, and made to be searched slowly.
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

/** The lockfile is binding, where there is one; run in `manager.directory`. */
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
    // Not `npm ci`, which refuses lockfiles written on a machine that lacked the packages of another platform.
    case 'npm':
      return 'npm install --no-audit --no-fund'
  }
}

/** Runs a script of package.json; its name is the platform's own. */
export const scriptCommandOf = (manager: Pick<PackageManager, 'name'> | null, script: string) =>
  `${manager?.name ?? 'npm'} run ${script}`

/** Yarn from version 2 on unpacks no packages unless it is told to: only programs that it starts find them. */
export async function usesPlugAndPlay(source: Source, { name, version, directory }: PackageManager): Promise<boolean> {
  if (name !== 'yarn' || !isBerry(version)) return false
  const settings = await source.text(`${directory}.yarnrc.yml`, maxSettingsLength)
  return !/^nodeLinker:\s*["']?(node-modules|pnpm)\b/m.test(settings ?? '')
}

/** A command of the platform's own, started by yarn. */
export const byYarn = (command: string): string =>
  command
    .replace(/(^|&& )npx --no-install /g, '$1yarn ')
    .replace(/^npm (start|run) ?/, 'yarn run $1 ')
    .replace(/^yarn run run /, 'yarn run ')
    .replace(/^node /, 'yarn node ')
    .trim()

/**
 * What runs before the install command, unseen. yarn 1 fetches from the addresses in its lockfile, whatever registry it
 * is given: they name hosts that a closed network has not.
 */
export function beforeInstall({ name, version, lockfile, directory }: PackageManager, registry: string): string | null {
  if (name !== 'yarn' || isBerry(version) || lockfile !== `${directory}yarn.lock`) return null
  const { origin, pathname } = new URL(registry)
  const to = `${origin}${pathname.replace(/[^\w./%~-]/g, '').replace(/\/$/, '')}/`
  return `[ -L yarn.lock ] || sed -i 's#https*://registry\\.yarnpkg\\.com/#${to}#; s#https*://registry\\.npmjs\\.org/#${to}#' yarn.lock`
}

/** Its settings: the registry, where it keeps downloads, and that it is the right version of itself. */
export function managerEnvironment(manager: PackageManager | null, registry: string): Record<string, string> {
  const own: Record<string, string> = {
    COREPACK_NPM_REGISTRY: registry.replace(/\/$/, ''),
    COREPACK_ENABLE_STRICT: '0',
  }
  if (manager?.name === 'pnpm') {
    // pnpm up to version 10 reads the first form, later ones the second.
    const settings = {
      store_dir: `${downloadsInside}/pnpm`,
      cache_dir: `${downloadsInside}/pnpm-cache`,
      manage_package_manager_versions: 'false',
    }
    for (const [name, value] of Object.entries(settings)) {
      own[`npm_config_${name}`] = value
      own[`pnpm_config_${name}`] = value
    }
    own.pnpm_config_registry = registry
    own.pnpm_config_pm_on_fail = 'ignore'
  }
  if (manager?.name === 'yarn' && !isBerry(manager.version)) {
    own.YARN_REGISTRY = registry
    own.YARN_CACHE_FOLDER = `${downloadsInside}/yarn`
    own.YARN_DISABLE_SELF_UPDATE_CHECK = 'true'
  } else if (manager?.name === 'yarn') {
    own.YARN_NPM_REGISTRY_SERVER = registry.replace(/\/$/, '')
    own.YARN_GLOBAL_FOLDER = `${downloadsInside}/yarn`
    // Packages that are not unpacked must be in the tree, or a server would not have them; copies are kept.
    own.YARN_ENABLE_GLOBAL_CACHE = 'false'
    own.YARN_ENABLE_TELEMETRY = '0'
    if (registry.startsWith('http:')) own.YARN_UNSAFE_HTTP_WHITELIST = new URL(registry).hostname
  }
  if (manager?.name === 'bun') {
    own.BUN_CONFIG_REGISTRY = registry
    own.BUN_INSTALL_CACHE_DIR = `${downloadsInside}/bun`
  }
  return own
}

/** Dependencies in the cache are the same if lockfile, command, package manager and Node are. */
export function dependenciesKeyOf(
  lockfileHash: string,
  command: string,
  manager: PackageManager,
  node: NodeMajor,
): string {
  const version = manager.version ?? ''
  const with_ = node === hostNode ? process.version : nodeProgram(node).version
  const facts = [with_, process.arch, `${manager.name}@${version}`, manager.directory, command, lockfileHash]
  return createHash('sha256').update(facts.join('\n')).digest('hex')
}

export type FetchedTools = {
  programs: MountedProgram[]
  /** What runs: null is the machine's own, which is none of the versions that are offered. */
  node: NodeMajor | null
  /** A sentence for the log. */
  warning: string | null
}

/** The package manager must be there; without the wanted Node, the machine's own is used. */
export async function fetchTools(
  programs: Programs,
  manager: ChosenManager | null,
  node: NodeMajor,
): Promise<FetchedTools> {
  const opened: MountedProgram[] = []
  let warning: string | null = null
  let has: NodeMajor | null = node
  const own = `the build runs on Node ${process.versions.node}.`
  if (node !== hostNode && !hasGlibc()) {
    warning = `Node ${node} is not available on this machine: ${own}`
    has = hostNode
  } else if (node !== hostNode) {
    await programs.open(nodeProgram(node)).then(
      (program) => opened.push(program),
      (error) => {
        if (!(error instanceof ProgramUnavailable)) throw error
        warning = `${error.message} So ${own}`
        has = hostNode
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
  return { programs: opened, node: has, warning }
}
