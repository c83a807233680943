// .gitignore and .berthignore: which files to leave out, by git's rules.

import { readGlob } from './glob.ts'

export type Rule = { negated: boolean; directoryOnly: boolean; matches(path: string): boolean }

/** Never uploaded, whatever the ignore files say. */
const never = new Set(['.git', 'node_modules', '.berth', '.DS_Store', '.hg', '.svn'])

/** The rules of an ignore file in the directory `base`, which is empty or ends in a slash. */
export function readRules(text: string, base: string): Rule[] {
  return text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .flatMap((line) => {
      let pattern = trimBlanks(line)
      if (pattern === '' || pattern.startsWith('#')) return []
      const negated = pattern.startsWith('!')
      if (negated) pattern = pattern.slice(1)
      const directoryOnly = pattern.endsWith('/')
      if (directoryOnly) pattern = pattern.slice(0, -1)
      // With a slash before the end it is a path; otherwise it is a name at any depth.
      const anchored = pattern.includes('/')
      const glob = readGlob(pattern.replace(/^\//, ''))
      if (!glob) return []
      const matches = (path: string) =>
        path.startsWith(base) &&
        glob(anchored ? path.slice(base.length).split('/') : [path.slice(path.lastIndexOf('/') + 1)])
      return [{ negated, directoryOnly, matches }]
    })
}

/** Removes trailing blanks, except one escaped by a backslash. */
function trimBlanks(line: string): string {
  const trimmed = line.trimEnd()
  let slashes = 0
  while (trimmed[trimmed.length - 1 - slashes] === '\\') slashes++
  return slashes % 2 === 1 ? line.slice(0, trimmed.length + 1) : trimmed
}

/** .env files contain secrets: they are left out unless a rule such as `!.env.production` includes them. */
export const secretFiles = readRules('.env\n.env.*\n!.env.example\n!.env.sample\n!.env.template\n', '')

/** The last rule that matches decides. */
export function isIgnored(path: string, name: string, isDirectory: boolean, rules: Rule[]): boolean {
  if (never.has(name)) return true
  const last = lastMatch(path, isDirectory, rules)
  return last !== undefined && !last.negated
}

/** Whether the file is left out only by the rules about secrets. */
export function isSecret(path: string, rules: Rule[]): boolean {
  return secretFiles.includes(lastMatch(path, false, rules)!)
}

function lastMatch(path: string, isDirectory: boolean, rules: Rule[]): Rule | undefined {
  return rules.findLast((rule) => (isDirectory || !rule.directoryOnly) && rule.matches(path))
}
