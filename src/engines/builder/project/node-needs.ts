// Which versions of Node.js the packages of a project need: by npm's lockfile, else by what is known of frameworks.
import type { Source } from '../tree/source-tree.ts'
import { maxLockfileLength } from './lockfile.ts'
import { ownOf, type PackageManifest, readObject } from './manifest.ts'
import type { NodeNeed } from './node-version.ts'
import type { PackageManager } from './types.ts'

/** From which version on a framework needs more than the oldest Node.js that is offered. */
const known: readonly [name: string, since: number, range: string][] = [
  ['astro', 6, '>=22'],
  ['nuxt', 4, '>=22'],
  ['@react-router/dev', 8, '>=22'],
  ['@sveltejs/kit', 3, '>=22'],
  ['@angular/core', 22, '>=22'],
  ['@solidjs/start', 2, '>=24'],
]

const plainRange = /^[\w\s.*^~<>=|-]{1,100}$/
const maxNeeds = 200

/** Of the packages that package.json names itself: what those need is theirs to say. */
export async function nodeNeeds(
  source: Source,
  manager: PackageManager | null,
  { dependencies }: PackageManifest,
): Promise<NodeNeed[]> {
  if (dependencies.size === 0) return []
  const isNpm = manager?.name === 'npm' && manager.lockfile !== null
  const text = isNpm ? await source.text(manager.lockfile!, maxLockfileLength) : null
  const packages = ownOf(await readObject(text), 'packages')
  const locked = [...dependencies.keys()].slice(0, maxNeeds).flatMap((name) => {
    const range = ownOf(ownOf(ownOf(packages, `node_modules/${name}`), 'engines'), 'node')
    return typeof range === 'string' && plainRange.test(range) ? [{ name: name.slice(0, 100), range }] : []
  })
  const others = known.flatMap(([name, since, range]) => {
    const asked = dependencies.get(name)
    return asked !== undefined && majorOf(asked) >= since ? [{ name, range }] : []
  })
  return [...others.filter(({ name }) => !locked.some((one) => one.name === name)), ...locked]
}

/** The lowest major version that a range begins with; `latest` and `*` are the newest. */
function majorOf(range: string): number {
  const found = /^[\^~>=v\s]{0,10}(\d{1,4})\b/.exec(range)?.[1]
  return found === undefined ? (/^(latest|\*|x|)$/.test(range.trim()) ? Number.POSITIVE_INFINITY : 0) : Number(found)
}
