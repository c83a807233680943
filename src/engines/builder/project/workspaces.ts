// Decides which folders belong to a workspace, by `workspaces` in package.json or pnpm-workspace.yaml.
import type { Source } from '../tree/source-tree.ts'
import type { PackageManifest } from './manifest.ts'

const maxListLength = 1 << 16
const maxPatterns = 500

/** Whether the workspace in `directory` includes the folder `member`. Both are empty or have a trailing slash. */
export async function hasMember(
  source: Source,
  directory: string,
  { members }: Pick<PackageManifest, 'members'>,
  member: string,
): Promise<boolean> {
  const listed = await source.text(`${directory}pnpm-workspace.yaml`, maxListLength)
  const patterns = listed === null ? members : packagesOf(listed)
  // If unreadable, the package manager decides.
  if (patterns === null) return true
  return isAmong(patterns, member.slice(directory.length).replace(/\/$/, ''))
}

/** The list `packages` in pnpm-workspace.yaml; null if it is missing or in an unsupported syntax. */
export function packagesOf(yaml: string): string[] | null {
  const lines = yaml.split(/\r?\n/)
  const start = lines.findIndex((line) => /^packages\s*:/.test(line))
  if (start < 0) return null
  const rest = lines[start]!.replace(/^packages\s*:/, '')
    .replace(/\s#.*/, '')
    .trim()
  if (rest !== '') return rest.startsWith('[') && rest.endsWith(']') ? rest.slice(1, -1).split(',').map(plain) : null
  const items: string[] = []
  for (const line of lines.slice(start + 1)) {
    const text = line.replace(/(^|\s)#.*/, '').trim()
    if (text === '') continue
    if (!text.startsWith('-')) break
    items.push(plain(text.slice(1)))
  }
  return items
}

const plain = (text: string) => text.trim().replace(/^(["'])(.*)\1$/, '$2')

/** Supports `*`, `**` and leading `!`. Patterns with braces and the like always match. */
export function isAmong(patterns: string[], path: string): boolean {
  const names = path.split('/')
  let isIncluded = false
  for (const pattern of patterns.slice(0, maxPatterns)) {
    const isNegated = pattern.startsWith('!')
    const parts = pattern
      .slice(isNegated ? 1 : 0)
      .split('/')
      .filter((part) => part !== '' && part !== '.')
    if (!isNegated && /[{}[\]()?+]/.test(pattern)) isIncluded = true
    else if (fits(parts, names, '**', (part, name) => fits([...part], [...name], '*', (a, b) => a === b))) {
      if (isNegated) return false
      isIncluded = true
    }
  }
  return isIncluded
}

/** Whether `items` match the pattern, where `any` matches any number of items. Takes at most quadratic time. */
function fits(
  pattern: string[],
  items: string[],
  any: string,
  isSame: (part: string, item: string) => boolean,
): boolean {
  let [at, item, star, from] = [0, 0, -1, 0]
  while (item < items.length) {
    if (pattern[at] === any) {
      star = at++
      from = item
    } else if (at < pattern.length && isSame(pattern[at]!, items[item]!)) {
      at++
      item++
    } else if (star >= 0) {
      at = star + 1
      item = ++from
    } else return false
  }
  while (pattern[at] === any) at++
  return at === pattern.length
}
