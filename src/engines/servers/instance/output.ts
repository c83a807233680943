// Writes a server's output to the deployment's log: by lines, with secrets masked, in batches, rate-limited.
import { StringDecoder } from 'node:string_decoder'
import { consumeLines, createLineCleaner, maxLineLength } from '../../../platform/observe/log-lines.ts'
import type { NewLogLine } from '../../../services/deployments/index.ts'
import type { LogLimits } from './limits.ts'

export type Output = {
  /** Values in `secrets` are masked from here on. */
  beginRun(secrets: string[]): void
  system(text: string): void
  print(stream: 'stdout' | 'stderr', chunk: Buffer): void
  /** Writes the unterminated lines of a run. */
  endRun(): void
  /** The latest lines that the run printed. */
  latest(): string[]
  /** Writes what is queued; gives up after a timeout. */
  flush(): Promise<void>
}

export type LogWriter = {
  write(lines: NewLogLine[]): Promise<void>
  /** Removes the oldest lines of step `run` until `keepBytes` remain; without it the log is cut at the limit. */
  trim?(keepBytes: number): Promise<void>
}

const step = 'run'
const lineFeed = 0x0a
const flushMs = 200
// Delay after a failed write; output is queued meanwhile, up to the bound below.
const retryMs = 2_000
const flushTimeoutMs = 2_000
const maxWaitingBytes = 2 << 20
const batchLines = 2_000
const latestLines = 10
// Each line is a row of the database, even an empty one.
const minLineBytes = 100
const minuteMs = 60_000

const costOf = (text: string) => Math.max(minLineBytes, Math.min(text.length, maxLineLength) + 1)

export function createOutput(writer: LogWriter, limits: LogLimits): Output {
  let clean = createLineCleaner([])
  const waiting: NewLogLine[] = []
  let waitingBytes = 0
  let totalBytes = 0
  let untrimmedBytes = 0
  let minute = { startMs: 0, bytes: 0, dropped: 0 }
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | null = null
  let decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  const open = { stdout: '', stderr: '' }
  let latest: string[] = []

  const cleanLine = (text: string) => clean(text.replace(/\r$/, ''))

  function push(stream: NewLogLine['stream'], text: string): void {
    waiting.push({ stream, step, text, at: new Date() })
    waitingBytes += costOf(text)
    totalBytes += text.length
    untrimmedBytes += text.length
    timer ??= setTimeout(write, flushMs)
  }

  function system(text: string): void {
    push('system', clean(text))
  }

  /** Whether another line of the server is within the limits; a note marks `count` dropped lines. */
  function admits(bytes: number, count = 1): boolean {
    if (Date.now() - minute.startMs >= minuteMs) {
      if (minute.dropped > 0) system(`${minute.dropped} lines of output were dropped.`)
      minute = { startMs: Date.now(), bytes: 0, dropped: 0 }
    }
    if (!writer.trim && totalBytes > limits.bytes) return false
    if (minute.dropped === 0 && minute.bytes + bytes <= limits.bytesPerMinute && waitingBytes <= maxWaitingBytes) {
      minute.bytes += bytes
      return true
    }
    if (minute.dropped === 0) system('The output comes too fast; lines are dropped for the rest of this minute.')
    minute.dropped += count
    return false
  }

  /** False: it was dropped. */
  function line(stream: 'stdout' | 'stderr', text: string): boolean {
    latest.push(text)
    if (latest.length > latestLines) latest.shift()
    if (!admits(costOf(text))) return false
    push(stream, cleanLine(text))
    const cutNow = !writer.trim && totalBytes > limits.bytes
    if (cutNow) system(`The output is longer than ${Math.round(limits.bytes / (1 << 20))} MB; the rest is cut.`)
    return true
  }

  /** Drops whole lines in one step, of which only the end is looked for. */
  function drop(text: string): void {
    let count = 0
    for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) === lineFeed) count++
    let start = text.length - 1
    for (let n = 0; n < latestLines && start > 0; n++) start = text.lastIndexOf('\n', start - 1)
    const last = text.slice(start > 0 ? start + 1 : 0, -1).split('\n')
    latest = [...latest, ...last].slice(-latestLines)
    admits(Number.POSITIVE_INFINITY, count)
  }

  // One write at a time keeps the lines in order; a failed one is retried with the lines that came meanwhile.
  function write(): Promise<void> {
    timer = undefined
    writing ??= writeWaiting().finally(() => {
      writing = null
    })
    return writing
  }

  async function writeWaiting(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, batchLines)
      try {
        await writer.write(batch)
      } catch {
        waiting.unshift(...batch)
        timer ??= setTimeout(write, retryMs).unref()
        return
      }
      for (const { text } of batch) waitingBytes -= costOf(text)
      // In steps of a tenth, so that a log at its limit is not trimmed for every line.
      if (writer.trim && totalBytes > limits.bytes && untrimmedBytes > limits.bytes / 10) {
        untrimmedBytes = 0
        await writer.trim(limits.bytes).catch(() => {})
      }
    }
  }

  return {
    beginRun(secrets) {
      latest = []
      clean = createLineCleaner(secrets)
    },
    system,
    print(stream, chunk) {
      const text = open[stream] + decoders[stream].write(chunk)
      open[stream] = consumeLines(text, (text) => line(stream, text), drop).slice(-maxLineLength * 2)
    },
    endRun() {
      for (const stream of ['stdout', 'stderr'] as const) {
        const rest = open[stream] + decoders[stream].end()
        open[stream] = ''
        if (rest !== '') line(stream, rest)
      }
      decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
    },
    latest: () => latest.map(cleanLine),
    async flush() {
      const late = Promise.withResolvers<void>()
      const giveUp = setTimeout(late.resolve, flushTimeoutMs)
      await Promise.race([late.promise, (writing ?? Promise.resolve()).then(write)])
      clearTimeout(giveUp)
      // No further retry: lines that cannot be written now are lost.
      clearTimeout(timer)
      timer = undefined
    },
  }
}
