// Git's path patterns. A matcher without backtracking: hostile patterns cost at most the length of the pattern times
// that of the path, unlike regular expressions.

type Matcher<T> = (one: T) => boolean
/** Matches one character of a name, or one name of a path; `many` matches any number of them. */
type Step<T> = Matcher<T> | 'many'

/** A matcher for the names of a path; null if the pattern matches nothing. */
export function readGlob(pattern: string): Matcher<string[]> | null {
  const steps = readSteps(pattern)
  if (!steps) return null
  // A trailing ** matches the contents of a folder, but not the folder.
  if (steps.at(-1) === 'many') steps.push(() => true)
  return (names) => walk(steps, names.length, (at) => names[at]!)
}

/** After a `many`, the first match of the following steps is enough, so it never goes back further than the last `many`. */
function walk<T>(steps: Step<T>[], length: number, read: (at: number) => T): boolean {
  let step = 0
  let at = 0
  let many = -1
  let afterMany = 0
  while (at < length) {
    const one = steps[step]
    if (one === 'many') {
      many = step++
      afterMany = at
    } else if (one?.(read(at))) {
      step++
      at++
    } else if (many >= 0) {
      step = many + 1
      at = ++afterMany
    } else return false
  }
  while (steps[step] === 'many') step++
  return step === steps.length
}

/** One step for each name of the pattern. */
function readSteps(pattern: string): Step<string>[] | null {
  const steps: Step<string>[] = []
  let name = emptyName()
  for (let at = 0; at < pattern.length; at++) {
    const isEscaped = pattern[at] === '\\'
    if (isEscaped && ++at === pattern.length) return null
    const char = pattern[at]!
    if (char === '/') {
      addName(steps, name)
      name = emptyName()
    } else if (isEscaped || !'*?['.includes(char)) {
      const code = pattern.charCodeAt(at)
      name.steps.push((it) => it === code)
      name.text += char
    } else {
      name.isPlain = false
      if (char === '?') name.steps.push(() => true)
      else if (char === '*') {
        name.stars++
        if (name.steps.at(-1) !== 'many') name.steps.push('many')
      } else {
        const set = readSet(pattern, at + 1)
        if (!set) return null
        name.steps.push(set.matches)
        at = set.end
      }
    }
  }
  addName(steps, name)
  return steps
}

type Name = { steps: Step<number>[]; text: string; isPlain: boolean; stars: number }

const emptyName = (): Name => ({ steps: [], text: '', isPlain: true, stars: 0 })

function addName(steps: Step<string>[], { steps: own, text, isPlain, stars }: Name): void {
  if (isPlain) steps.push((name) => name === text)
  // Two asterisks match folders only if they are the whole name.
  else if (own.length > 1 || stars < 2) steps.push((name) => walk(own, name.length, (at) => name.charCodeAt(at)))
  else if (steps.at(-1) !== 'many') steps.push('many')
}

const namedSets: Record<string, RegExp> = {
  alnum: /[a-z0-9]/i,
  alpha: /[a-z]/i,
  blank: /[ \t]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the class contains them.
  cntrl: /[\0-\x1f\x7f]/,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[\t-\r ]/,
  upper: /[A-Z]/,
  xdigit: /[0-9a-f]/i,
}

/** Reads a set such as `[!a-z[:digit:]]` from after its first bracket, and returns its end; null if it has none. */
function readSet(pattern: string, start: number): { matches: Matcher<number>; end: number } | null {
  const ranges: [first: number, last: number][] = []
  const named: RegExp[] = []
  const isNegated = pattern[start] === '!' || pattern[start] === '^'
  const first = isNegated ? start + 1 : start
  let before: number | null = null
  let close = -1
  let at = first
  // A bracket in first position is a literal.
  for (; at === first || pattern[at] !== ']'; at++) {
    if (at >= pattern.length) return null
    const isRange: boolean =
      pattern[at] === '-' && before !== null && at + 1 < pattern.length && pattern[at + 1] !== ']'
    if (pattern.startsWith('[:', at)) {
      // Reused for all `[:` before it, so that many of them stay linear.
      if (close < at + 2) close = pattern.indexOf(']', at + 2)
      if (close < 0) return null
      if (close > at + 2 && pattern[close - 1] === ':') {
        const name = pattern.slice(at + 2, close - 1)
        if (!Object.hasOwn(namedSets, name)) return null
        named.push(namedSets[name]!)
        before = null
        at = close
        continue
      }
    }
    if (isRange) at++
    if (pattern[at] === '\\') at++
    if (at >= pattern.length) return null
    const code = pattern.charCodeAt(at)
    ranges.push([isRange ? before! : code, code])
    before = isRange ? null : code
  }
  const has = (code: number) =>
    ranges.some(([from, to]) => code >= from && code <= to) || named.some((set) => set.test(String.fromCharCode(code)))
  return { matches: (code) => has(code) !== isNegated, end: at }
}
