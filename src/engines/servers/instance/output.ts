// Writes a server's output to the deployment's log: in batches of lines, rate-limited, with secrets masked.
import { StringDecoder } from 'node:string_decoder'
import { consumeLines, createLineCleaner, maxLineLength } from '../../../platform/observe/log-lines.ts'
import type { NewLogLine } from '../../../services/deployments/index.ts'
import type { LogLimits } from './limits.ts'

export type Output = {
  /** From now on, masks the values in `secrets`. */
  startRun(secrets: string[]): void
  system(text: string): void
  print(stream: 'stdout' | 'stderr', chunk: Buffer): void
  /** Writes the last line of a run if it is unterminated. */
  endRun(): void
  /** The latest lines that the run printed. */
  latest(): string[]
  /** Writes all queued lines; gives up after a timeout. */
  flush(): Promise<void>
}

export type LogWriter = {
  write(lines: NewLogLine[]): Promise<void>
  /** Removes the oldest lines of step `run` until `keepBytes` remain. Without `trim`, the log is cut at the limit. */
  trim?(keepBytes: number): Promise<void>
}

const step = 'run'
const lineFeed = 0x0a
const flushMs = 200
// Delay after a failed write. Meanwhile up to `maxQueuedBytes` of output are queued.
const retryMs = 2_000
const flushTimeoutMs = 2_000
const maxQueuedBytes = 2 << 20
const batchLines = 2_000
const latestLines = 10
// Even an empty line is a database row.
const minLineBytes = 100
const minuteMs = 60_000

const costOf = (text: string) => Math.max(minLineBytes, Math.min(text.length, maxLineLength) + 1)

export function createOutput(writer: LogWriter, limits: LogLimits): Output {
  let clean = createLineCleaner([])
  const queue: NewLogLine[] = []
  let queuedBytes = 0
  let totalBytes = 0
  let untrimmedBytes = 0
  let minute = { startMs: 0, bytes: 0, dropped: 0 }
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | null = null
  let decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  const partial = { stdout: '', stderr: '' }
  let latest: string[] = []

  const cleanLine = (text: string) => clean(text.replace(/\r$/, ''))

  function push(stream: NewLogLine['stream'], text: string): void {
    queue.push({ stream, step, text, at: new Date() })
    queuedBytes += costOf(text)
    totalBytes += text.length
    untrimmedBytes += text.length
    timer ??= setTimeout(write, flushMs)
  }

  function system(text: string): void {
    push('system', clean(text))
  }

  /** Whether another line is within the limits. If not, counts `count` lines as dropped. */
  function admits(bytes: number, count = 1): boolean {
    if (Date.now() - minute.startMs >= minuteMs) {
      if (minute.dropped > 0) system(`${minute.dropped} lines of output were dropped.`)
      minute = { startMs: Date.now(), bytes: 0, dropped: 0 }
    }
    if (!writer.trim && totalBytes > limits.bytes) return false
    if (minute.dropped === 0 && minute.bytes + bytes <= limits.bytesPerMinute && queuedBytes <= maxQueuedBytes) {
      minute.bytes += bytes
      return true
    }
    if (minute.dropped === 0) system('The output comes too fast; lines are dropped for the rest of this minute.')
    minute.dropped += count
    return false
  }

  /** Returns false if the line was dropped. */
  function addLine(stream: 'stdout' | 'stderr', text: string): boolean {
    latest.push(text)
    if (latest.length > latestLines) latest.shift()
    if (!admits(costOf(text))) return false
    push(stream, cleanLine(text))
    const isFull = !writer.trim && totalBytes > limits.bytes
    if (isFull) system(`The output is longer than ${Math.round(limits.bytes / (1 << 20))} MB; the rest is cut.`)
    return true
  }

  /** Drops many lines at once without splitting all of them. */
  function dropLines(text: string): void {
    let count = 0
    for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) === lineFeed) count++
    let start = text.length - 1
    for (let n = 0; n < latestLines && start > 0; n++) start = text.lastIndexOf('\n', start - 1)
    const last = text.slice(start > 0 ? start + 1 : 0, -1).split('\n')
    latest = [...latest, ...last].slice(-latestLines)
    admits(Number.POSITIVE_INFINITY, count)
  }

  // One write at a time keeps the lines in order. A failed one is retried together with newer lines.
  function write(): Promise<void> {
    timer = undefined
    writing ??= writeQueue().finally(() => {
      writing = null
    })
    return writing
  }

  async function writeQueue(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, batchLines)
      try {
        await writer.write(batch)
      } catch {
        queue.unshift(...batch)
        timer ??= setTimeout(write, retryMs).unref()
        return
      }
      for (const { text } of batch) queuedBytes -= costOf(text)
      // Trims in steps of a tenth of the limit instead of after every line.
      if (writer.trim && totalBytes > limits.bytes && untrimmedBytes > limits.bytes / 10) {
        untrimmedBytes = 0
        await writer.trim(limits.bytes).catch(() => {})
      }
    }
  }

  return {
    startRun(secrets) {
      latest = []
      clean = createLineCleaner(secrets)
    },
    system,
    print(stream, chunk) {
      const text = partial[stream] + decoders[stream].write(chunk)
      partial[stream] = consumeLines(text, (text) => addLine(stream, text), dropLines).slice(-maxLineLength * 2)
    },
    endRun() {
      for (const stream of ['stdout', 'stderr'] as const) {
        const rest = partial[stream] + decoders[stream].end()
        partial[stream] = ''
        if (rest !== '') addLine(stream, rest)
      }
      decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
    },
    latest: () => latest.map(cleanLine),
    async flush() {
      const timeout = Promise.withResolvers<void>()
      const deadline = setTimeout(timeout.resolve, flushTimeoutMs)
      await Promise.race([timeout.promise, (writing ?? Promise.resolve()).then(write)])
      clearTimeout(deadline)
      // No more retries: lines that can't be written now are lost.
      clearTimeout(timer)
      timer = undefined
    },
  }
}
