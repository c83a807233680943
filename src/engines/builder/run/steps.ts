// Several commands in one sandbox, which takes 80 ms to open: a marker in the output shows where the next one begins.
import { randomBytes } from 'node:crypto'

export type Steps = {
  /** For the shell of `stepsArgv`. */
  script: string
  /** Receives chunks of standard output. */
  heard(chunk: Buffer): void
  /** The command ended; held-back bytes are output. */
  end(): void
}

/** A shell that reads its script from stdin, so that the sandbox can open earlier. An empty script fails. */
export const stepsArgv = ['/bin/sh', '-c', 'script=$(cat) && [ -n "$script" ] && exec < /dev/null && eval "$script"']

// The marker begins with an octet that text does not contain, so that output is rarely held back.
const recordSeparator = 0x1e

export const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** Runs each command if the one before succeeded; `onNext` is called with the index of the one that begins. */
export function stepsOf(
  directory: string,
  commands: string[],
  onNext: (index: number) => void,
  onOutput: (chunk: Buffer) => void,
): Steps {
  // Random; a build that prints the marker on purpose garbles only its own log.
  const mark = Buffer.concat([Buffer.of(recordSeparator), Buffer.from(randomBytes(16).toString('hex'))])
  const lines = commands.map((command, index) =>
    index === commands.length - 1
      ? `exec /bin/sh -c ${quote(command)}`
      : `/bin/sh -c ${quote(command)} || exit; printf %s ${quote(mark.toString('latin1'))}`,
  )
  let held: Buffer = Buffer.alloc(0)
  let index = 0
  return {
    script: [...(directory === '' ? [] : [`cd ${quote(`./${directory}`)} || exit`]), ...lines].join('\n'),
    heard(chunk) {
      let rest = held.length > 0 ? Buffer.concat([held, chunk]) : chunk
      held = Buffer.alloc(0)
      for (let at = rest.indexOf(mark); at >= 0 && index < commands.length - 1; at = rest.indexOf(mark)) {
        onOutput(rest.subarray(0, at))
        onNext(++index)
        rest = rest.subarray(at + mark.length)
      }
      // A marker may be split between two chunks.
      const torn = rest.indexOf(recordSeparator, Math.max(0, rest.length - mark.length + 1))
      if (torn >= 0 && index < commands.length - 1) {
        held = rest.subarray(torn)
        rest = rest.subarray(0, torn)
      }
      if (rest.length > 0) onOutput(rest)
    },
    end() {
      if (held.length > 0) onOutput(held)
      held = Buffer.alloc(0)
    },
  }
}
