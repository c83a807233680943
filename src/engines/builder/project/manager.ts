// Finds a project's package manager: by `packageManager` in package.json, else by the lockfile.
import type { Source } from '../tree/source-tree.ts'
import { maxManifestLength, type PackageManifest, readManifest } from './manifest.ts'
import type { ManagerName, PackageManager } from './types.ts'
import type { Warning } from './warning.ts'
import { hasMember } from './workspaces.ts'

// In order of precedence.
const lockfiles: readonly [file: string, name: ManagerName][] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
  ['package-lock.json', 'npm'],
  ['npm-shrinkwrap.json', 'npm'],
]

export type FoundManager = { manager: PackageManager | null; because: string[]; warnings: Warning[] }

/** `root` is the root directory: empty, or with a trailing slash. `manifest` is its package.json. */
export async function findManager(source: Source, root: string, manifest: PackageManifest): Promise<FoundManager> {
  const location = await findDirectory(source, root, manifest)
  const { directory } = location
  const found = lockfiles.filter(([file]) => source.entries.has(directory + file))
  const named = parseName(manifest.packageManager) ?? parseName(location.manifest.packageManager)
  const matching = named ? found.filter(([, name]) => name === named.name) : found
  const [lockfile, name = named?.name ?? 'npm'] = matching[0] ?? []
  const manager = { name, version: named?.version ?? null, lockfile: lockfile ? directory + lockfile : null, directory }
  const warnings: Warning[] = []
  if (new Set(found.map(([, name]) => name)).size > 1) {
    const names = found.map(([file]) => file).join(', ')
    const message = `There are lockfiles of several package managers (${names}): ${name} is used. Remove the others.`
    warnings.push({ code: 'several_lockfiles', message, file: directory + found[0]![0] })
  }
  const written = [manifest.packageManager, location.manifest.packageManager].find((text) => text !== null)
  if (written && !named) {
    const message = `packageManager in package.json must be a name with an exact version, such as pnpm@10.1.0: ${name} is used.`
    warnings.push({ code: 'package_manager_unknown', message, file: `${root}package.json` })
  }
  if (!lockfile && manifest.dependencies.size === 0 && !manifest.unreadable && directory === root) {
    return { manager: null, because: [], warnings }
  }
  if (named) return { manager, because: [`packageManager in package.json is ${name}.`], warnings }
  return { manager, because: lockfile ? [`${directory}${lockfile} is a lockfile of ${name}.`] : [], warnings }
}

/** The directory to install packages in: the workspace's if the project is part of one. */
async function findDirectory(source: Source, root: string, manifest: PackageManifest) {
  const isLocked = (directory: string) => lockfiles.some(([file]) => source.entries.has(directory + file))
  if (root === '' || isLocked(root)) return { directory: root, manifest }
  const parts = root.split('/').slice(0, -1)
  for (let depth = parts.length - 1; depth >= 0; depth--) {
    const directory = parts
      .slice(0, depth)
      .map((part) => `${part}/`)
      .join('')
    const text = await source.text(`${directory}package.json`, maxManifestLength)
    const above = await readManifest(text)
    const isWorkspace = above.workspaces || source.entries.has(`${directory}pnpm-workspace.yaml`)
    if (text === null || !isWorkspace) continue
    if (await hasMember(source, directory, above, root)) return { directory, manifest: above }
  }
  return { directory: root, manifest }
}

/** Parses `pnpm@10.1.0+sha512.…`. The optional hash is checked by the package manager's own tools. */
function parseName(text: string | null): { name: ManagerName; version: string } | null {
  const found = /^(npm|pnpm|yarn|bun)@(\d{1,4}\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z.-]{1,60})?)(?:\+[\w.=/+-]*)?$/.exec(
    text ?? '',
  )
  return found && { name: found[1] as ManagerName, version: found[2]! }
}

export const describeManager = ({ name, version }: PackageManager): string =>
  version === null ? name : `${name}@${version}`
