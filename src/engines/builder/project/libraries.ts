// Finds the workspace packages that must be built before a project.

import type { Source } from '../tree/source-tree.ts'
import { readObject } from './manifest.ts'
import type { PackageManager } from './types.ts'

const maxManifestLength = 1 << 20
const maxPackages = 1_000
// For all packages together. Packages beyond it count as having no dependencies.
const maxBytes = 16 << 20
const kinds = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']

type Member = { directory: string; name: string | null; needs: string[]; isBuilt: boolean }

/** Directories of the workspace's packages, in the form of `PackageManager.directory`; at most `maxPackages`. */
export function memberDirectories(source: Source, { directory }: Pick<PackageManager, 'directory'>): string[] {
  const directories: string[] = []
  for (const path of source.entries.keys()) {
    if (!path.startsWith(directory) || !/(^|\/)package\.json$/.test(path)) continue
    if (/(^|\/)node_modules\//.test(path)) continue
    if (directories.push(path.slice(0, -'package.json'.length)) === maxPackages) break
  }
  return directories
}

/**
 * Directories of the libraries with a build script that the package in `root` depends on, in build order. Visits each
 * package once, so cycles end.
 */
export async function librariesOf(
  source: Source,
  manager: Pick<PackageManager, 'directory'>,
  root: string,
): Promise<string[]> {
  if (root === manager.directory) return []
  const directories = memberDirectories(source, manager)
  const members: Member[] = []
  let bytesLeft = maxBytes
  for (const directory of directories) {
    bytesLeft -= source.entries.get(`${directory}package.json`)?.size ?? 0
    members.push(await readMember(source, directory, bytesLeft < 0 ? 0 : maxManifestLength))
  }
  const byName = new Map(members.flatMap((member) => (member.name === null ? [] : [[member.name, member] as const])))
  const ordered: string[] = []
  const seen = new Set<Member>()
  // Not recursive, because a chain of packages may be as long as the workspace is large.
  const stack: { member: Member; next: number }[] = []
  const enter = (member: Member | undefined) => {
    if (!member || seen.has(member)) return
    seen.add(member)
    stack.push({ member, next: 0 })
  }
  enter(members.find(({ directory }) => directory === root))
  while (stack.length > 0) {
    const top = stack.at(-1)!
    const need = top.member.needs[top.next++]
    if (need !== undefined) enter(byName.get(need))
    else {
      stack.pop()
      const { directory, isBuilt } = top.member
      if (isBuilt && directory !== root && directory !== manager.directory) ordered.push(directory)
    }
  }
  return ordered
}

async function readMember(source: Source, directory: string, maxLength: number): Promise<Member> {
  const text = await source.text(`${directory}package.json`, maxLength)
  const manifest = (await readObject(text)) ?? {}
  const { name } = manifest
  const needs = kinds.flatMap((kind) => Object.keys(objectOf(manifest[kind])))
  const isBuilt = typeof objectOf(manifest.scripts).build === 'string'
  return { directory, name: typeof name === 'string' ? name : null, needs: [...new Set(needs)], isBuilt }
}

const objectOf = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {}
