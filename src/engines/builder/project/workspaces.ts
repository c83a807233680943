// Which folders belong to a workspace: by `workspaces` of package.json, or pnpm-workspace.yaml.
import type { Source } from '../tree/source-tree.ts'
import type { PackageManifest } from './manifest.ts'

const maxListLength = 1 << 16
const maxPatterns = 500

/** Whether the workspace in `directory` has `member`, a folder below it; both are empty or have a slash at their end. */
export async function hasMember(
  source: Source,
  directory: string,
  { members }: Pick<PackageManifest, 'members'>,
  member: string,
): Promise<boolean> {
  const listed = await source.text(`${directory}pnpm-workspace.yaml`, maxListLength)
  const patterns = listed === null ? members : packagesOf(listed)
  // What cannot be read is left to the package manager.
  if (patterns === null) return true
  return isAmong(patterns, member.slice(directory.length).replace(/\/$/, ''))
}

/** The list `packages` of pnpm-workspace.yaml; null if there is none, or it is written in another way. */
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

/** Patterns with `*` and `**`, and `!` for what is left out. Braces and the like are taken to fit. */
export function isAmong(patterns: string[], path: string): boolean {
  const names = path.split('/')
  let among = false
  for (const pattern of patterns.slice(0, maxPatterns)) {
    const isNot = pattern.startsWith('!')
    const parts = pattern
      .slice(isNot ? 1 : 0)
      .split('/')
      .filter((part) => part !== '' && part !== '.')
    if (!isNot && /[{}[\]()?+]/.test(pattern)) among = true
    else if (fits(parts, names, '**', (part, name) => fits([...part], [...name], '*', (a, b) => a === b))) {
      if (isNot) return false
      among = true
    }
  }
  return among
}

/** Whether all of `items` fit the pattern, in which `any` stands for any number of them. Takes time as the product. */
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
