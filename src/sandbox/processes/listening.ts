// Reads a command's output with a limit on CPU time, because a command can print without end.
import type { Readable } from 'node:stream'

// A stream gets a twentieth of this process's time. Then the command has to wait.
const restFactor = 20
const sliceMs = 5
const maxRestMs = 2_000

export function hear(stream: Readable, listener: (chunk: Buffer) => void): void {
  let workedMs = 0
  stream.on('data', (chunk: Buffer) => {
    const startedMs = performance.now()
    listener(chunk)
    workedMs += performance.now() - startedMs
    if (workedMs < sliceMs) return
    stream.pause()
    setTimeout(() => stream.resume(), Math.min(workedMs * restFactor, maxRestMs))
    workedMs = 0
  })
}
