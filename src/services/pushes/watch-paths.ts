// Whether a push changes anything under the watched paths of a project.
import type { Static } from '@sinclair/typebox'
import type { Push } from '../../schemas/push-hooks.ts'

/** Any number of folders, or one name, split at its stars. */
type Part = '**' | readonly string[]
type Pattern = { negated: boolean; parts: Part[]; folder: boolean }

/** `*` matches any part of one name. Each piece between two stars is searched once, without backtracking. */
function matchesName(pieces: readonly string[], name: string): boolean {
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

function parsePattern(text: string): Pattern {
  const negated = text.startsWith('!')
  const names = text
    .slice(negated ? 1 : 0)
    .replace(/^\.\//, '')
    .replace(/\/$/, '')
    .split('/')
  const parts = names.map((name) => (name === '**' ? name : name.split('*')))
  return { negated, parts, folder: !names.at(-1)!.includes('*') }
}

/** `**` matches any number of folders. A pattern that ends in a plain name also matches everything in that folder. */
function matches({ parts, folder }: Pattern, names: readonly string[]): boolean {
  // Whether the first `length` names of the path match the parts so far, by length.
  let reached = [true, ...names.map(() => false)]
  for (const part of parts) {
    const next: boolean[] = []
    for (let length = 0; length <= names.length; length++) {
      if (part === '**') next.push(reached[length]! || (length > 0 && next[length - 1]!))
      else next.push(length > 0 && reached[length - 1]! && matchesName(part, names[length - 1]!))
    }
    reached = next
  }
  return folder ? reached.includes(true) : reached[names.length]!
}

// Comparisons of a pattern part with a name; this many take about ten milliseconds.
const maxComparisons = 500_000

/**
 * Whether one of the files is watched. The last matching pattern decides; `!` negates it. A file that matches none is
 * watched only if all patterns are negated. If the check would be too expensive, the files count as watched.
 */
export function matchesAny(patterns: readonly string[], files: readonly string[]): boolean {
  const parsed = patterns.map(parsePattern)
  const paths = files.map((file) => file.split('/'))
  const count = (lists: readonly (readonly unknown[])[]) => lists.reduce((sum, { length }) => sum + length, 0)
  if (count(parsed.map(({ parts }) => parts)) * count(paths) > maxComparisons) return true
  const watchesUnmatched = parsed.every(({ negated }) => negated)
  return paths.some((names) => {
    const last = parsed.findLast((pattern) => matches(pattern, names))
    return last === undefined ? watchesUnmatched : !last.negated
  })
}

// Hosts omit commits of a large push: GitHub sends at most 2,048 (formerly 20), Gitea at most 5.
const maxCommits = 20
const maxFilesOfCommit = 300
// A push with more text than this is built without checking, which limits the work.
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

/** The files that a push has changed since `before`; null if the event may not list all of them. */
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
  // People push empty commits to trigger a build.
  if (files.length === 0 || files.reduce((sum, { length }) => sum + length, 0) > maxCharacters) return null
  return { before, files: [...new Set(files)] }
}
