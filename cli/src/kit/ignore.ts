// .gitignore and .berthignore: which files are left out, by the rules of git.

export type Rule = { negated: boolean; directoryOnly: boolean; matches(path: string): boolean }

/** Never uploaded, whatever the files say: what git, Berth and npm keep for themselves. */
const never = new Set(['.git', 'node_modules', '.berth', '.DS_Store', '.hg', '.svn'])

/** Rules of a file in the directory `base`, which is empty or ends in a slash. */
export function readRules(text: string, base: string): Rule[] {
  return text.split(/\r?\n/).flatMap((line) => {
    let pattern = line.replace(/(?<!\\)\s+$/, '')
    if (pattern === '' || pattern.startsWith('#')) return []
    const negated = pattern.startsWith('!')
    if (negated) pattern = pattern.slice(1)
    const directoryOnly = pattern.endsWith('/')
    if (directoryOnly) pattern = pattern.slice(0, -1)
    // With a slash before its end it is a path; without one, a name at any depth.
    const anchored = pattern.includes('/')
    const regex = new RegExp(`^${anchored ? '' : '(?:.*/)?'}${translate(pattern.replace(/^\//, ''))}$`, 's')
    const matches = (path: string) => path.startsWith(base) && regex.test(path.slice(base.length))
    return [{ negated, directoryOnly, matches }]
  })
}

function translate(pattern: string): string {
  const parts = pattern.match(/\\.|\*\*\/|\/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|./gsu) ?? []
  return parts
    .map((part) => {
      if (part === '**/') return '(?:.*/)?'
      if (part === '/**') return '/.*'
      if (part[0] === '*') return '[^/]*'
      if (part === '?') return '[^/]'
      if (part.length > 2 && part[0] === '[') return classOf(part)
      return literal(part.length === 2 && part[0] === '\\' ? part[1]! : part)
    })
    .join('')
}

function classOf(part: string): string {
  const inside = part
    .slice(1, -1)
    .replace(/^!/, '^')
    .replace(/[\\[\]]/g, '\\$&')
  try {
    const source = `(?!/)[${inside}]`
    new RegExp(source, 'u')
    return source
  } catch {
    return literal(part)
  }
}

const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')

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
