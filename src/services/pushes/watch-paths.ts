// Whether a push changes anything under the watched paths of a project.
import type { Static } from '@sinclair/typebox'
import type { Push } from '../../schemas/push-hooks.ts'

/** Any number of folders, or one name: what is between its stars. */
type Part = '**' | readonly string[]
type Pattern = { negated: boolean; parts: Part[]; folder: boolean }

/** `*` stands for any part of one name. Each piece between two stars is looked for once, so nothing backtracks. */
function fitsName(pieces: readonly string[], name: string): boolean {
  const [first, last] = [pieces[0]!, pieces.at(-1)!]
  if (pieces.length === 1) return first === name
  if (!name.startsWith(first)) return false
  let at = first.length
  for (let i = 1; i < pieces.length - 1; i++) {
    const found = name.indexOf(pieces[i]!, at)
    if (found < 0) return false
    at = found + pieces[i]!.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

function read(text: string): Pattern {
  const negated = text.startsWith('!')
  const names = text
    .slice(negated ? 1 : 0)
    .replace(/^\.\//, '')
    .replace(/\/$/, '')
    .split('/')
  const parts = names.map((name) => (name === '**' ? name : name.split('*')))
  return { negated, parts, folder: !names.at(-1)!.includes('*') }
}

/** `**` stands for any number of folders; a pattern that ends in a plain name is for all that is in a folder, too. */
function fits({ parts, folder }: Pattern, names: readonly string[]): boolean {
  // Which beginnings of the path fit the parts so far, by their length.
  let reached = [true, ...names.map(() => false)]
  for (const part of parts) {
    const next: boolean[] = []
    for (let length = 0; length <= names.length; length++) {
      if (part === '**') next.push(reached[length]! || (length > 0 && next[length - 1]!))
      else next.push(length > 0 && reached[length - 1]! && fitsName(part, names[length - 1]!))
    }
    reached = next
  }
  return folder ? reached.includes(true) : reached[names.length]!
}

// How often a part of a pattern is compared with a name: some ten milliseconds.
const maxComparisons = 500_000

/**
 * Whether one of the files is watched: by the last pattern that fits it, which says no if it begins with `!`. A file that
 * none fits is watched if all patterns say no. Where finding that out would take long, they are taken to be watched.
 */
export function watchesAny(patterns: readonly string[], files: readonly string[]): boolean {
  const known = patterns.map(read)
  const paths = files.map((file) => file.split('/'))
  const count = (lists: readonly (readonly unknown[])[]) => lists.reduce((sum, { length }) => sum + length, 0)
  if (count(known.map(({ parts }) => parts)) * count(paths) > maxComparisons) return true
  const others = known.every(({ negated }) => negated)
  return paths.some((names) => {
    const last = known.findLast((pattern) => fits(pattern, names))
    return last === undefined ? others : !last.negated
  })
}

// Hosts leave out commits of a large push: GitHub all but the first 2,048, and earlier all but 20; Gitea all but 5.
const maxCommits = 20
const maxFilesOfCommit = 300
// A push that changes more is built, and nobody's list is looked through for long.
const maxCharacters = 50_000

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

function filesOf(commit: unknown): string[] | null {
  if (typeof commit !== 'object' || commit === null) return null
  const { added, modified, removed } = commit as Record<string, unknown>
  const lists = [added, modified, removed].map((list) => list ?? [])
  if (added == null && modified == null && removed == null) return null
  if (!lists.every(isTexts)) return null
  const files = lists.flat()
  return files.length < maxFilesOfCommit ? files : null
}

/** The files that a push changes, after `before`; null where it does not tell of all of them. */
export function changesOf(push: Static<typeof Push>): { before: string; files: string[] } | null {
  const { commits, before, forced, created } = push
  if (typeof before !== 'string' || !/^[0-9a-f]{40,64}$/.test(before) || /^0+$/.test(before)) return null
  if (forced === true || created === true || !Array.isArray(commits)) return null
  const total = push.total_commits_count ?? push.total_commits
  if (typeof total === 'number' ? total !== commits.length : commits.length >= maxCommits) return null
  const files: string[] = []
  for (const commit of commits) {
    const found = filesOf(commit)
    if (found === null) return null
    files.push(...found)
  }
  // A commit that changes nothing is made to have something built.
  if (files.length === 0 || files.reduce((sum, { length }) => sum + length, 0) > maxCharacters) return null
  return { before, files: [...new Set(files)] }
}
