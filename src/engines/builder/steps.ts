// Several commands in one sandbox, which costs 80 ms to open: a mark in the output tells where the next one begins.
import { randomBytes } from 'node:crypto'

export type Steps = {
  argv: string[]
  /** Takes standard output as it comes. */
  heard(chunk: Buffer): void
  /** The command ended; whatever was held back is output. */
  end(): void
}

// Begins with an octet that text does not have, so that output is held back as good as never.
const recordSeparator = 0x1e

/** Runs each command if the one before succeeded; `onNext` is called when the one at that place begins. */
export function stepsOf(commands: string[], onNext: (index: number) => void, onOutput: (chunk: Buffer) => void): Steps {
  // A build that prints it by itself, which it would have to look for, confuses nothing but its own log.
  const mark = Buffer.concat([Buffer.of(recordSeparator), Buffer.from(randomBytes(16).toString('hex'))])
  const argument = (index: number) => `"\${${index + 1}}"`
  const script = commands.map((_, index) =>
    index === commands.length - 1
      ? `exec /bin/sh -c ${argument(index)}`
      : `/bin/sh -c ${argument(index)} || exit; printf %s ${argument(commands.length)}`,
  )
  let held: Buffer = Buffer.alloc(0)
  let index = 0
  return {
    argv: ['/bin/sh', '-c', script.join('; '), 'build', ...commands, mark.toString('latin1')],
    heard(chunk) {
      let rest = held.length > 0 ? Buffer.concat([held, chunk]) : chunk
      held = Buffer.alloc(0)
      for (let at = rest.indexOf(mark); at >= 0 && index < commands.length - 1; at = rest.indexOf(mark)) {
        onOutput(rest.subarray(0, at))
        onNext(++index)
        rest = rest.subarray(at + mark.length)
      }
      // A mark may be torn in two.
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
