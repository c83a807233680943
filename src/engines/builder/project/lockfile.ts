// Warns if npm's lockfile is out of sync with package.json, because npm then installs untested versions.
import type { Source } from '../tree/source-tree.ts'
import { ownOf, type PackageManifest, readObject } from './manifest.ts'
import type { PackageManager } from './types.ts'
import type { Warning } from './warning.ts'

export const maxLockfileLength = 4 << 20

/** Other package managers fail if the lockfile is out of sync. */
export async function lockfileWarnings(
  source: Source,
  manager: PackageManager | null,
  root: string,
  manifest: PackageManifest,
): Promise<Warning[]> {
  if (manager?.name !== 'npm' || manager.lockfile === null) return []
  const text = await source.text(manager.lockfile, maxLockfileLength)
  const packages = ownOf(await readObject(text), 'packages')
  // The project's package: the root package or a member of the workspace.
  const own = ownOf(packages, root.slice(manager.directory.length).replace(/\/$/, ''))
  if (own === undefined) return []
  const kinds = ['optionalDependencies', 'devDependencies', 'dependencies']
  const ranges = kinds.map((kind) => ownOf(own, kind))
  const changed = [...manifest.dependencies].filter(
    ([name, range]) => !ranges.some((one) => ownOf(one, name) === range),
  )
  if (changed.length === 0) return []
  const names =
    changed
      .slice(0, 5)
      .map(([name]) => name.slice(0, 100))
      .join(', ') + (changed.length > 5 ? ' and more' : '')
  const message = `${manager.lockfile} is out of sync with package.json (${names}): run npm install and commit the lockfile.`
  return [{ code: 'lockfile_outdated', message, file: manager.lockfile }]
}
