// What a person sees at a terminal: short, coloured log lines, and a status line.

export type Output = { isTTY?: boolean; write(text: string): unknown }

export type Terminal = {
  /** For pino: takes a line of JSON. */
  write(line: string): void
  /** Replaces the status line; null removes it. Does nothing without a terminal. */
  status(text: string | null): void
}

/** From the configuration. */
type TerminalOptions = { logFormat: 'json' | 'pretty' | null; colour: boolean }

type Line = {
  level: number
  time: number
  msg?: string
  err?: { message?: string; stack?: string }
  [field: string]: unknown
}

const startOfLine = '\r\x1b[K'
const colours = { dim: 2, red: 31, yellow: 33 } as const
const [warn, error] = [40, 50]
// Fields about the process and the request, which nobody needs while reading along.
const hidden = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err', 'requestId', 'tokenId', 'route'])
const maxFields = 6
const maxValueCharacters = 100

/** Null if lines should be JSON: standard output isn't a terminal, and `pretty` isn't set. */
export function openStandardOutput({ logFormat, colour }: TerminalOptions): Terminal | null {
  const isPretty = logFormat === null ? process.stdout.isTTY : logFormat === 'pretty'
  return isPretty ? openTerminal(process.stdout, { colour }) : null
}

export function openTerminal(output: Output, { colour }: { colour: boolean }): Terminal {
  const isTerminal = output.isTTY === true
  let shown: string | null = null

  function paint(name: keyof typeof colours, text: string): string {
    return colour && isTerminal && text !== '' ? `\x1b[${colours[name]}m${text}\x1b[0m` : text
  }

  function format(line: Line): string {
    const name = line.level >= error ? paint('red', 'ERROR') : line.level >= warn ? paint('yellow', 'WARN') : ''
    const fields = Object.entries(line)
      .filter(([field, value]) => !hidden.has(field) && value != null)
      .slice(0, maxFields)
      .map(([field, value]) => `${field}=${short(value)}`)
    const message = [line.msg, line.err?.message].filter((text) => text).join(': ')
    const parts = [paint('dim', clock(line.time)), name, harmless(message), paint('dim', fields.join(' '))]
    const stack = line.level >= error ? stackOf(line.err) : []
    return [parts.filter((part) => part !== '').join(' '), ...stack.map((frame) => paint('dim', frame))].join('\n')
  }

  return {
    write(text) {
      const line = `${format(JSON.parse(text))}\n`
      output.write(shown === null ? line : `${startOfLine}${line}${shown}`)
    },
    status(text) {
      if (!isTerminal || text === shown) return
      shown = text
      output.write(`${startOfLine}${text ?? ''}`)
    },
  }
}

function clock(timeMs: number): string {
  return new Date(timeMs).toTimeString().slice(0, 8)
}

function short(value: unknown): string {
  const text = harmless(typeof value === 'string' ? value : JSON.stringify(value))
  return text.length > maxValueCharacters ? `${text.slice(0, maxValueCharacters)}…` : text
}

function stackOf(err: Line['err']): string[] {
  return (err?.stack ?? '')
    .split('\n')
    .filter((frame) => /^\s+at /.test(frame))
    .map(harmless)
}

/** Paths and names may come from attackers, so none may move the cursor or change the text direction. */
function harmless(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '·')
}
