// Which versions of Node.js a project's packages require: by npm's lockfile, else by a table of frameworks.
import type { Source } from '../tree/source-tree.ts'
import { maxLockfileLength } from './lockfile.ts'
import { ownOf, type PackageManifest, readObject } from './manifest.ts'
import type { NodeNeed as NodeRequirement } from './node-version.ts'
import type { PackageManager } from './types.ts'

/** Framework versions that require more than the oldest supported Node.js. */
const frameworkRequirements: readonly [name: string, since: number, range: string][] = [
  ['astro', 6, '>=22'],
  ['nuxt', 4, '>=22'],
  ['@react-router/dev', 8, '>=22'],
  ['@sveltejs/kit', 3, '>=22'],
  ['@angular/core', 22, '>=22'],
  ['@solidjs/start', 2, '>=24'],
]

const plainRange = /^[\w\s.*^~<>=|-]{1,100}$/
const maxRequirements = 200

/** Only checks direct dependencies, since each is responsible for its own. */
export async function readNodeRequirements(
  source: Source,
  manager: PackageManager | null,
  { dependencies }: PackageManifest,
): Promise<NodeRequirement[]> {
  if (dependencies.size === 0) return []
  const isNpm = manager?.name === 'npm' && manager.lockfile !== null
  const text = isNpm ? await source.text(manager.lockfile!, maxLockfileLength) : null
  const packages = ownOf(await readObject(text), 'packages')
  const locked = [...dependencies.keys()].slice(0, maxRequirements).flatMap((name) => {
    const range = ownOf(ownOf(ownOf(packages, `node_modules/${name}`), 'engines'), 'node')
    return typeof range === 'string' && plainRange.test(range) ? [{ name: name.slice(0, 100), range }] : []
  })
  const others = frameworkRequirements.flatMap(([name, since, range]) => {
    const declared = dependencies.get(name)
    return declared !== undefined && majorOf(declared) >= since ? [{ name, range }] : []
  })
  return [...others.filter(({ name }) => !locked.some((one) => one.name === name)), ...locked]
}

/** The major version that a range starts with; `latest` and `*` count as the newest. */
function majorOf(range: string): number {
  const found = /^[\^~>=v\s]{0,10}(\d{1,4})\b/.exec(range)?.[1]
  return found === undefined ? (/^(latest|\*|x|)$/.test(range.trim()) ? Number.POSITIVE_INFINITY : 0) : Number(found)
}
