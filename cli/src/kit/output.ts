// Prints data to stdout and everything else to stderr; colours and progress only on a terminal.
import { fromServer } from './shape.ts'
import { clean, cleanJson, table } from './text.ts'

export type Output = {
  /** Whether --json was given. */
  json: boolean
  /** The result: the API's object with --json, otherwise text. */
  show(value: unknown, format: () => string): void
  /** A list: one array with --json. */
  list(items: unknown[], heads: string[], row: (item: never) => unknown[]): void
  /** One item of a stream; with --json, a line of JSON. */
  item(value: unknown, format: () => string): void
  /** A message on stderr. */
  say(text: string): void
  /** A line that the next output replaces; only on a terminal. */
  progress(text: string): void
  paint(colour: Colour, text: string): string
}

const codes = { red: 31, green: 32, yellow: 33, grey: 90, bold: 1 } as const
export type Colour = keyof typeof codes

export function createOutput(json: boolean, env = process.env): Output {
  const live = process.stderr.isTTY === true && !json && env.TERM !== 'dumb'
  const coloured = live && !env.NO_COLOR
  let hasProgress = false
  const wipe = () => {
    if (hasProgress) process.stderr.write('\r\u001b[K')
    hasProgress = false
  }
  const writeLine = (text: string) => {
    wipe()
    process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
  }
  const write = (text: string) => (text === '' ? wipe() : writeLine(text))
  const say = (text: string) => {
    wipe()
    process.stderr.write(`${text}\n`)
  }
  return {
    json,
    show: (value, format) => write(json ? cleanJson(value, 2) : fromServer(format)),
    list(items, heads, row) {
      if (json) return write(cleanJson(items, 2))
      // A header without rows would count as data in scripts.
      if (items.length === 0) return say('None found.')
      write(
        table(
          heads,
          fromServer(() => items.map((item) => row(item as never))),
        ),
      )
    },
    item: (value, format) => writeLine(json ? cleanJson(value) : fromServer(format)),
    say,
    progress(text) {
      if (!live) return
      const width = process.stderr.columns || 80
      process.stderr.write(`\r\u001b[K${clean(text).slice(0, width - 1)}`)
      hasProgress = true
    },
    paint: (colour, text) => (coloured ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text),
  }
}

/** `[#####     ]` */
export function bar(share: number, width = 20): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width)
  return `[${'#'.repeat(full)}${' '.repeat(width - full)}]`
}
