// .gitignore and .berthignore: which files are left out, by the rules of git.

import { readGlob } from './glob.ts'

export type Rule = { negated: boolean; directoryOnly: boolean; matches(path: string): boolean }

/** Never uploaded, whatever the files say: what git, Berth and npm keep for themselves. */
const never = new Set(['.git', 'node_modules', '.berth', '.DS_Store', '.hg', '.svn'])

/** Rules of a file in the directory `base`, which is empty or ends in a slash. */
export function readRules(text: string, base: string): Rule[] {
  return text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .flatMap((line) => {
      let pattern = withoutBlanks(line)
      if (pattern === '' || pattern.startsWith('#')) return []
      const negated = pattern.startsWith('!')
      if (negated) pattern = pattern.slice(1)
      const directoryOnly = pattern.endsWith('/')
      if (directoryOnly) pattern = pattern.slice(0, -1)
      // With a slash before its end it is a path; without one, a name at any depth.
      const anchored = pattern.includes('/')
      const fits = readGlob(pattern.replace(/^\//, ''))
      if (!fits) return []
      const matches = (path: string) =>
        path.startsWith(base) &&
        fits(anchored ? path.slice(base.length).split('/') : [path.slice(path.lastIndexOf('/') + 1)])
      return [{ negated, directoryOnly, matches }]
    })
}

/** Without the blanks at its end, but for one behind a backslash. */
function withoutBlanks(line: string): string {
  const trimmed = line.trimEnd()
  let slashes = 0
  while (trimmed[trimmed.length - 1 - slashes] === '\\') slashes++
  return slashes % 2 === 1 ? line.slice(0, trimmed.length + 1) : trimmed
}

/** Files of variables have secrets: they are left out unless a rule such as `!.env.production` wants them. */
export const secretFiles = readRules('.env\n.env.*\n!.env.example\n!.env.sample\n!.env.template\n', '')

/** The last rule that matches decides. */
export function isIgnored(path: string, name: string, isDirectory: boolean, rules: Rule[]): boolean {
  if (never.has(name)) return true
  const last = lastOf(path, isDirectory, rules)
  return last !== undefined && !last.negated
}

/** Whether it is left out by the rule about secrets, and by nothing else. */
export function isSecret(path: string, rules: Rule[]): boolean {
  return secretFiles.includes(lastOf(path, false, rules)!)
}

function lastOf(path: string, isDirectory: boolean, rules: Rule[]): Rule | undefined {
  return rules.findLast((rule) => (isDirectory || !rule.directoryOnly) && rule.matches(path))
}
