// Reads what a command prints, and no faster than this process can spare: a command prints as much as it likes.
import type { Readable } from 'node:stream'

// Of the time of this process, which everybody shares, one stream gets a twentieth: then the command waits.
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
