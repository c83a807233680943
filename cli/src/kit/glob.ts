// Patterns of git for paths. They are walked through side by side with the path, never tried in every way as a regular
// expression may be: it takes at most the length of the pattern times that of the path, whoever wrote it.

type Fits<T> = (one: T) => boolean
/** What one character of a name or one name of a path must be, or `many`: any number of them. */
type Step<T> = Fits<T> | 'many'

/** Whether the names of a path fit the pattern; null if nothing does. */
export function readGlob(pattern: string): Fits<string[]> | null {
  const steps = readSteps(pattern)
  if (!steps) return null
  // At the end it is what is in a folder, and not the folder.
  if (steps.at(-1) === 'many') steps.push(() => true)
  return (names) => walk(steps, names.length, (at) => names[at]!)
}

/** What is behind a `many` is looked for at its first place, and from there only forward: no other place can do better. */
function walk<T>(steps: Step<T>[], length: number, read: (at: number) => T): boolean {
  let step = 0
  let at = 0
  let many = -1
  let behindMany = 0
  while (at < length) {
    const one = steps[step]
    if (one === 'many') {
      many = step++
      behindMany = at
    } else if (one?.(read(at))) {
      step++
      at++
    } else if (many >= 0) {
      step = many + 1
      at = ++behindMany
    } else return false
  }
  while (steps[step] === 'many') step++
  return step === steps.length
}

/** One for each name of the pattern. */
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
        name.steps.push(set.fits)
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
  // Two asterisks are folders only if they are all of the name.
  else if (own.length > 1 || stars < 2) steps.push((name) => walk(own, name.length, (at) => name.charCodeAt(at)))
  else if (steps.at(-1) !== 'many') steps.push('many')
}

const namedSets: Record<string, RegExp> = {
  alnum: /[a-z0-9]/i,
  alpha: /[a-z]/i,
  blank: /[ \t]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it stands for.
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

/** A set such as `[!a-z[:digit:]]` from behind its first bracket, and where it ends; null if it does not. */
function readSet(pattern: string, start: number): { fits: Fits<number>; end: number } | null {
  const ranges: [first: number, last: number][] = []
  const named: RegExp[] = []
  const isNegated = pattern[start] === '!' || pattern[start] === '^'
  const first = isNegated ? start + 1 : start
  let before: number | null = null
  let close = -1
  let at = first
  // A bracket that comes first closes nothing.
  for (; at === first || pattern[at] !== ']'; at++) {
    if (at >= pattern.length) return null
    const isRange: boolean =
      pattern[at] === '-' && before !== null && at + 1 < pattern.length && pattern[at + 1] !== ']'
    if (pattern.startsWith('[:', at)) {
      // Looked for once, however many open before it.
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
  return { fits: (code) => has(code) !== isNegated, end: at }
}
