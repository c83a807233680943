// The _redirects file of a site, in Netlify's format: parsed once per deployment, applied to paths without a file.
import {
  isPreferred,
  languagesOf,
  matchParameters,
  type Parameter,
  parseParameter,
  preferredLanguage,
  type Query,
  readQuery,
  without,
} from './conditions.ts'
import {
  type Captures,
  capturesOf,
  encodePath,
  matchesPattern,
  type Pattern,
  parsePattern,
  splitPath,
} from './patterns.ts'

export type RedirectStatus = 301 | 302 | 303 | 307 | 308

export type RedirectRule = {
  from: Pattern
  to: string
  status: RedirectStatus | 200 | 404
  /** Takes precedence over a file at the same path. */
  forced: boolean
  /** Parameters that the query must have. */
  query?: Parameter[]
  /** In lower case; the visitor must prefer one of them. */
  languages?: ReadonlySet<string>
}

/** A line that was ignored. `protects`: ignoring it would expose something that should be protected. */
export type ParseNote = { line: number; text: string; protects?: true }

/** Longer files are ignored, because the process that parses them also serves other sites. */
export const maxRulesLength = 256 << 10

export type Redirected =
  | { kind: 'redirect'; location: string; status: RedirectStatus; forced: boolean }
  /** Shows the file at `path` (decoded, with leading slash) instead. */
  | { kind: 'rewrite'; path: string; status: 200 | 404; forced: boolean }

const statuses = new Set([301, 302, 303, 307, 308, 200, 404])
const isExternal = (to: string) => /^https?:\/\/[^/\s]/i.test(to)
const maxRules = 1_000
// Each may be replaced by a visitor's whole path.
const maxPlaceholders = 20
// Both are evaluated for each request, and sent to every edge.
const maxParameters = 20
const maxLanguages = 200
// How many matching rules may redirect to the requested path itself before we give up.
const maxLoops = 10
const placeholder = /:([A-Za-z]\w*)/g

/** An invalid line is skipped and noted: a typo must not take a site down. */
export function parseRedirects(text: string): { rules: RedirectRule[]; notes: ParseNote[] } {
  const rules: RedirectRule[] = []
  const notes: ParseNote[] = []
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    // `s` and no `$`: after a lone `\r`, the match would otherwise fail and be retried from every `#`.
    const content = raw.replace(/(^|\s)#.*/s, '').trim()
    if (content === '') continue
    if (rules.length === maxRules) {
      notes.push({ line: index + 1, text: `only the first ${maxRules} rules are followed` })
      break
    }
    const read = parseLine(content.split(/\s+/))
    if (typeof read === 'string') notes.push({ line: index + 1, text: read })
    else rules.push(read)
  }
  return { rules, notes }
}

function parseLine([from, ...rest]: string[]): RedirectRule | string {
  const at = rest.findIndex(isTarget)
  const query: Parameter[] = []
  if (at > maxParameters) return `a rule has at most ${maxParameters} query parameters`
  for (const text of at < 0 ? [] : rest.slice(0, at)) {
    const parameter = parseParameter(text)
    if (!parameter) return `${text} is neither a path nor a URL nor a query parameter`
    query.push(parameter)
  }
  if (at < 0)
    return rest.length === 0 ? 'a rule needs an address and a target' : `${rest[0]} is neither a path nor a URL`
  const pattern = parsePattern(from!)
  if (!pattern) return `${from} is not a path with placeholders as whole segments and a * only at its end`
  const to = rest[at]!
  if ((to.match(placeholder)?.length ?? 0) > maxPlaceholders) {
    return `a target has at most ${maxPlaceholders} placeholders`
  }
  const hasStatus = rest[at + 1] !== undefined && !rest[at + 1]!.includes('=')
  const status = hasStatus ? rest[at + 1]! : '301'
  const [, number, mark] = /^(\d{3})(!?)$/.exec(status) ?? []
  if (number === undefined || !statuses.has(Number(number))) return `${status} is not a status that is supported`
  if ((number === '200' || number === '404') && isExternal(to)) return `a rule with ${number} needs a path of the site`
  const rule: RedirectRule = {
    from: pattern,
    to,
    status: Number(number) as RedirectRule['status'],
    forced: mark === '!',
  }
  if (query.length > 0) rule.query = query
  const languages = new Set<string>()
  for (const condition of rest.slice(at + (hasStatus ? 2 : 1))) {
    const more = languagesOf(condition)
    if (!more) return `the condition ${condition} is not supported, so the rule is left out`
    for (const language of more) languages.add(language)
    if (languages.size > maxLanguages) return `a rule has at most ${maxLanguages} languages`
  }
  if (languages.size > 0) rule.languages = languages
  return rule
}

const isTarget = (text: string) => text.startsWith('/') || isExternal(text)

/** Replaces placeholders by captures. `encode` differs between a path, a query and a file name. */
function fill(template: string, captures: Captures, encode: (text: string) => string): string {
  return template.replace(placeholder, (whole, name: string) => {
    const value = Object.hasOwn(captures, name) ? captures[name] : undefined
    return value === undefined ? whole : encode(value)
  })
}

function locationOf(to: string, captures: Captures, query: string): string {
  // The colons of a scheme and a port aren't placeholders.
  const start = isExternal(to) ? to.slice(0, (to.indexOf('/', 8) + 1 || to.length + 1) - 1) : ''
  const rest = to.slice(start.length)
  const cut = rest.search(/[?#]/)
  const [path, tail] = cut < 0 ? [rest, ''] : [rest.slice(0, cut), rest.slice(cut)]
  let filled = fill(path, captures, encodePath)
  // With `/old/*  /:splat`, a request for /old//evil.example would otherwise redirect to another host.
  if (start === '') filled = filled.replace(/^[/\\]+/, '/')
  const end = fill(tail, captures, encodeURIComponent)
  const passed = query !== '' && !end.includes('?') ? query : ''
  const hash = end.indexOf('#')
  const location =
    hash < 0 ? start + filled + end + passed : start + filled + end.slice(0, hash) + passed + end.slice(hash)
  return location.replace(/[^\x21-\x7e]/g, (character) => encodeURIComponent(character.toWellFormed()))
}

/**
 * Applies the first rule that matches a decoded path. `query` is empty or starts with `?`; it is passed on without the
 * parameters that the rule requires. `accepted` is the visitor's Accept-Language header.
 */
export function applyRedirects(
  rules: readonly RedirectRule[],
  path: string,
  query: string,
  accepted?: string,
): Redirected | null {
  const parts = splitPath(path)
  let loops = 0
  let language: string | undefined
  let parsedQuery: Query | undefined
  for (const rule of rules) {
    if (!matchesPattern(rule.from, parts)) continue
    if (rule.languages) {
      language ??= preferredLanguage(accepted)
      if (!isPreferred(rule.languages, language)) continue
    }
    let parameters: Captures | null = null
    if (rule.query) {
      parsedQuery ??= readQuery(query)
      parameters = matchParameters(rule.query, parsedQuery)
      if (!parameters) continue
    }
    const captures = { ...capturesOf(rule.from, parts), ...parameters }
    const rest = rule.query ? without(rule.query, parsedQuery!) : query
    const { status, forced } = rule
    if (status === 200 || status === 404) {
      const target = rule.to.replace(/[?#].*$/, '')
      return { kind: 'rewrite', path: fill(decoded(target), captures, (text) => text), status, forced }
    }
    const location = locationOf(rule.to, captures, rest)
    // A redirect to the requested path would loop forever, unless it removes parameters.
    const itself = withoutSlash(location.replace(/[?#].*$/, '')) === withoutSlash(encodePath(path))
    if (itself && (!rule.query || location.includes('?'))) {
      if (++loops === maxLoops) return null
      continue
    }
    return { kind: 'redirect', location, status, forced }
  }
  return null
}

const withoutSlash = (path: string) => (path.endsWith('/') ? path.slice(0, -1) : path)

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
