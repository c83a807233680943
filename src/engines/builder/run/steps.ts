// Runs several commands in one sandbox, which takes 80 ms to open. A marker in the output separates them.
import { randomBytes } from 'node:crypto'

export type Steps = {
  /** The input of `stepsArgv`. */
  script: string
  /** Receives chunks of standard output. */
  receive(chunk: Buffer): void
  /** Call when the command has ended, to pass on held-back bytes. */
  end(): void
}

/** A shell that reads its script from stdin, so that the sandbox can open earlier. An empty script fails. */
export const stepsArgv = ['/bin/sh', '-c', 'script=$(cat) && [ -n "$script" ] && exec < /dev/null && eval "$script"']

// The marker starts with a byte that text doesn't contain, so output is rarely held back.
const recordSeparator = 0x1e

export const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** Runs each command if the previous one succeeded. `onNext` gets the index of each started command but the first. */
export function createSteps(
  directory: string,
  commands: string[],
  onNext: (index: number) => void,
  onOutput: (chunk: Buffer) => void,
): Steps {
  // Random. A build that prints the marker on purpose only garbles its own log.
  const mark = Buffer.concat([Buffer.of(recordSeparator), Buffer.from(randomBytes(16).toString('hex'))])
  const lines = commands.map((command, index) =>
    index === commands.length - 1
      ? `exec /bin/sh -c ${quote(command)}`
      : `/bin/sh -c ${quote(command)} || exit; printf %s ${quote(mark.toString('latin1'))}`,
  )
  let pending: Buffer = Buffer.alloc(0)
  let index = 0
  return {
    script: [...(directory === '' ? [] : [`cd ${quote(`./${directory}`)} || exit`]), ...lines].join('\n'),
    receive(chunk) {
      let rest = pending.length > 0 ? Buffer.concat([pending, chunk]) : chunk
      pending = Buffer.alloc(0)
      for (let at = rest.indexOf(mark); at >= 0 && index < commands.length - 1; at = rest.indexOf(mark)) {
        onOutput(rest.subarray(0, at))
        onNext(++index)
        rest = rest.subarray(at + mark.length)
      }
      // A marker may be split between two chunks.
      const partial = rest.indexOf(recordSeparator, Math.max(0, rest.length - mark.length + 1))
      if (partial >= 0 && index < commands.length - 1) {
        pending = rest.subarray(partial)
        rest = rest.subarray(0, partial)
      }
      if (rest.length > 0) onOutput(rest)
    },
    end() {
      if (pending.length > 0) onOutput(pending)
      pending = Buffer.alloc(0)
    },
  }
}
