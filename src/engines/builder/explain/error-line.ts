// Finds the line of a log that says why a command or a server failed.

export type PrintedLine = { seq: number; text: string }

export type ErrorLine = {
  /** The line without the package manager's prefix. */
  line: string
  /** The line with some context. */
  excerpt: string
  /** `seq` of the line. */
  position: number
  /** False if it is just the last meaningful line. */
  isError: boolean
}

/** How many of the last lines are searched, and how much of each. */
export const maxLines = 1_000
const maxSearched = 1_000
const maxShown = 300
const linesAround = [2, 9] as const
const maxExcerpt = 2_000
/** Before an error, Node prints where it was thrown: the location, the source line, a caret and an empty line. */
const sourceLocation = /^(?:file:\/\/)?\/\S{1,400}:\d{1,7}$/
const linesOfSource = 4

/** The line a pattern points to: its own, or the next one that is neither empty nor a location in the code. */
type Pattern = [RegExp, 'this' | 'next']

const toolPatterns: readonly Pattern[] = [
  // TypeScript, plain and pretty.
  [/(?:^|[ :])error TS\d{1,6}: /, 'this'],
  // esbuild.
  [/^\s{0,4}[✘X] \[ERROR\] /, 'this'],
  // Vite and Rollup.
  [/^error during build:/, 'next'],
  // Next.
  [/^Failed to compile\./, 'next'],
  [/^(?:Error: )?Turbopack build failed with \d+ error/, 'next'],
  [/^Error occurred prerendering page /, 'next'],
  // webpack.
  [/^(?:ERROR in|Module build failed) /, 'next'],
  // pnpm, Yarn.
  [/^\s{0,4}\[?ERR_PNPM_(?!RECURSIVE|EXEC)/, 'this'],
  [/^➤ YN00(?:01|09|16|18|27|28|35|41|82): /, 'this'],
]

/** How error messages of programs begin. */
const generalPatterns: readonly RegExp[] = [
  /^\[?(?:Uncaught |Unhandled |\[[\w@/-]{1,40}\] )?[A-Z]\w{0,60}(?:Error|Exception|Rejection)(?: \[\w{1,60}\])?: ?\S/,
  /^(?:Uncaught )?Error(?: \[\w{1,60}\])?: \S/,
  /^(?:fatal|error|ERROR|panic): \S/,
  /^(?:curl: \(\d{1,3}\)|(?:\/bin\/)?(?:ba)?sh: )/,
]

const npmPrefix = /^npm (?:error|ERR!)(?: |$)/
/** Lines in which npm describes an error, without the error itself. */
const npmFacts =
  /^(?:code|errno|syscall|path|dest|cwd|file|command|signal|workspace|location|lifecycle|network This|network In|network If|network$|404$|404 Note|404 tarball|A complete log|Lifecycle script|This is related to npm)\b|^\s*$|^404$/

/** Lines that follow from an error or surround it. */
const noise: readonly RegExp[] = [
  /^\s*$/,
  // Stack frames, and marks in source excerpts.
  /^\s*(?:at |in )\S/,
  /^\s*[\^~─│╵╷╭╰╯┬|\s{}[\](),;.-]+$/,
  /^\s*\d{1,6} [│|]/,
  // Fields of errors that Node prints.
  /^\s+(?:errno|code|syscall|hostname|address|port|path|requireStack|generatedMessage|errors): /,
  /^(?:Node\.js v\d|Require stack:|- \/|Emitted 'error' event)/,
  /^npm (?:warn|notice|WARN)\b/,
  /^\s{0,4}(?:\[?ELIFECYCLE|\[?ERR_PNPM_RECURSIVE|error Command failed with exit code|info Visit |WARN\b|➤ YN0000)/,
  /^(?:[✗x] Build failed in|Build failed with \d+ error|Found \d+ error|\d+ errors?$|webpack [\d.]+ compiled with)/,
  /^gyp (?:info|verb|http|WARN)/,
  /^(?:> \S|\$ \S|Export encountered|> Build error occurred|Elapsed|Done in)/,
]

/** A path with an optional line number, which Next and webpack print before an error. */
const fileLocation = /^(?:file: |\.{0,2}\/)[^\s]{1,400}(?: [\d:-]{1,20})?$/

/** Package managers print a script's command before they run it. */
const isScript = (text: string) => text.startsWith('> ')
const isHead = (text: string) => generalPatterns.some((pattern) => pattern.test(text))
const isNoise = (text: string) => noise.some((pattern) => pattern.test(text))

/**
 * Searches the end of what a command or server printed. If no error is recognized, returns the last meaningful line,
 * unless later lines are missing (`isWhole` is false). Null if there is none.
 */
export function findErrorLine(lines: readonly PrintedLine[], isWhole = true): ErrorLine | null {
  const last = lines.slice(-maxLines)
  const searched = last.map(({ text }) => text.slice(0, maxSearched).trimEnd())
  const texts = searched.map(contentOf)
  const npm = texts.findIndex((text, index) => npmPrefix.test(searched[index]!) && !isNoise(text))
  const error = indexOfError(texts) ?? npm
  const index = error >= 0 || !isWhole ? error : texts.findLastIndex((text) => !isNoise(text))
  if (index < 0) return null
  // For a last line, the context that matters comes before it.
  const [before, after] = error >= 0 ? linesAround : linesAround.toReversed()
  const isThrown = sourceLocation.test(texts[index - linesOfSource] ?? '')
  const around = last.slice(Math.max(0, index - (isThrown ? linesOfSource : before!)), index + after! + 1)
  return {
    line: shorten(texts[index]!.trim().replace(/^\[cause\]: /, ''), maxShown),
    excerpt: shorten(around.map(({ text }) => shorten(text.trimEnd(), maxShown)).join('\n'), maxExcerpt),
    position: last[index]!.seq,
    isError: error >= 0,
  }
}

/** Strips npm's prefix. Empty for lines that npm only adds to an error. */
function contentOf(text: string): string {
  if (!npmPrefix.test(text)) return text
  const rest = text.replace(npmPrefix, '')
  return npmFacts.test(rest) ? '' : rest
}

function indexOfError(texts: readonly string[]): number | null {
  for (const [index, text] of texts.entries()) {
    if (isScript(text)) continue
    for (const [pattern, which] of toolPatterns) {
      if (pattern.test(text)) return which === 'this' ? index : (firstMeaningfulAfter(texts, index) ?? index)
    }
  }
  const heads = texts.flatMap((text, index) => (isHead(text) ? [index] : []))
  // A program may have printed and survived other errors before the one that ended it.
  const crash = texts.findLastIndex((text) => text.startsWith('Node.js v'))
  const head = crash < 0 ? heads[0] : heads.findLast((index) => index < crash)
  return head === undefined ? null : causeOf(texts, head)
}

/** The next line that says more than where the error is. */
function firstMeaningfulAfter(texts: readonly string[], index: number): number | null {
  const rest = texts.slice(index + 1, index + 1 + linesAround[1])
  const isAnnounced = (text: string) => toolPatterns.some(([pattern, which]) => which === 'next' && pattern.test(text))
  const found = rest.findIndex((text) => !isNoise(text) && !fileLocation.test(text) && !isAnnounced(text))
  return found < 0 ? null : index + 1 + found
}

/** `fetch failed` says nothing. Node prints the cause, with the host, below it. */
function causeOf(texts: readonly string[], index: number): number {
  if (!texts[index]!.includes('fetch failed')) return index
  const found = texts.slice(index, index + 30).findIndex((text) => text.trimStart().startsWith('[cause]: '))
  return found < 0 ? index : index + found
}

const shorten = (text: string, length: number) =>
  text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text
