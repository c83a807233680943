// How a commit is built: from the project's settings, else from its lockfile, scripts and framework.
import { hostNode, type NodeMajor, nodeMajors } from '../../sandbox/node-versions.ts'
import type { Build } from '../../services/deployments/builds.ts'
import type { ManagerName, PackageManager } from './detection/types.ts'
import { librariesOf } from './libraries.ts'
import { type Candidate, outputsOf } from './output.ts'
import type { Source } from './source-tree.ts'
import { type ChosenManager, chooseManager, dependenciesKeyOf, installCommandOf, scriptCommandOf } from './toolchain.ts'

export type Recipe = {
  /** Null: nothing to install. */
  install: string | null
  /** Null: nothing to build, the files are served as they are. */
  build: string | null
  /** Null: npm of this machine. */
  manager: ChosenManager | null
  node: NodeMajor
  /** Directories of workspace packages that are built first, in this order. */
  libraries: string[]
  /** Directories to look for the output in, first match wins; relative to the root directory. */
  outputs: Candidate[]
  /** Cached dependencies are valid only for the same key; null without a lockfile. */
  dependenciesKey: string | null
  /** Started with `npm start` instead of being served from files. */
  server: boolean
}

/** Untrusted: no field is sure to have its proper type. */
type PackageJson = {
  scripts?: { build?: unknown }
  dependencies?: unknown
  devDependencies?: unknown
  packageManager?: unknown
  workspaces?: unknown
  engines?: { node?: unknown }
}

const lockfiles: [file: string, name: ManagerName][] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
  ['package-lock.json', 'npm'],
  ['npm-shrinkwrap.json', 'npm'],
]

const longestManifest = 1 << 20

/** `root` is the root directory, empty or with a slash at its end. */
export async function readRecipe(source: Source, root: string, build: Build): Promise<Recipe> {
  const manifest = await readManifest(source, root)
  const found = manifest && (await findManager(source, root, manifest))
  const manager = found && (await chooseManager(source, found))
  const node = await findNode(source, root, manifest)
  const installCommand = build.installCommand ?? (manager && installCommandOf(manager))
  const script = manifest?.scripts?.build ? scriptCommandOf(manager, 'build') : null
  const buildCommand = build.buildCommand ?? script ?? (build.framework === 'hugo' ? 'hugo' : null)
  const server = build.framework === 'node'
  const hash = manager?.lockfile && source.entries.get(manager.lockfile)?.hash
  return {
    install: installCommand,
    build: buildCommand,
    manager,
    node,
    libraries: manager && build.buildCommand === null ? await librariesOf(source, manager, root) : [],
    outputs: server ? [{ path: '.', needsIndex: false }] : outputsOf(build, buildCommand !== null),
    dependenciesKey: hash && installCommand ? dependenciesKeyOf(hash, installCommand, manager, node) : null,
    server,
  }
}

async function findManager(source: Source, root: string, manifest: PackageJson): Promise<PackageManager | null> {
  const lockfileIn = (directory: string) => lockfiles.find(([file]) => source.entries.has(directory + file))
  let directory = root
  let named = manifest.packageManager
  for (let above = root; above !== '' && !lockfileIn(directory); ) {
    above = above.replace(/[^/]+\/$/, '')
    const one = await readManifest(source, above)
    if (!one?.workspaces && !source.entries.has(`${above}pnpm-workspace.yaml`)) continue
    directory = above
    named ??= one?.packageManager
    break
  }
  const lockfile = lockfileIn(directory)
  const [, name, version = null] = /^(npm|pnpm|yarn|bun)@(\d+\.\d+\.\d+[\w.-]*)/.exec(String(named ?? '')) ?? []
  if (!lockfile && directory === root && !isFilled(manifest.dependencies) && !isFilled(manifest.devDependencies))
    return null
  return {
    name: (name as ManagerName | undefined) ?? lockfile?.[1] ?? 'npm',
    version,
    lockfile: lockfile ? directory + lockfile[0] : null,
    directory,
  }
}

async function findNode(source: Source, root: string, manifest: PackageJson | null): Promise<NodeMajor> {
  const text =
    (await source.text(`${root}.nvmrc`, 200)) ??
    (await source.text(`${root}.node-version`, 200)) ??
    String(manifest?.engines?.node ?? '')
  const wanted = /^[\^~=v]*(\d+)/.exec(text.trim())?.[1]
  return nodeMajors.find((major) => major === wanted) ?? hostNode ?? '24'
}

async function readManifest(source: Source, directory: string): Promise<PackageJson | null> {
  const text = await source.text(`${directory}package.json`, longestManifest)
  return text === null ? null : parseManifest(text)
}

function isFilled(dependencies: unknown): boolean {
  if (dependencies === null || typeof dependencies !== 'object') return false
  for (const _ in dependencies) return true
  return false
}

function parseManifest(text: string): PackageJson {
  try {
    const parsed: unknown = JSON.parse(text)
    return parsed !== null && typeof parsed === 'object' ? (parsed as PackageJson) : {}
  } catch {
    // npm will report the error in the log.
    return { dependencies: { unreadable: '*' } }
  }
}
