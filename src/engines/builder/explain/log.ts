// The log of one build: masks secrets, writes lines in batches, and stops at a limit.
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../platform/database/database.ts'
import { consumeLines, createLineCleaner, maxLineLength } from '../../../platform/observe/log-lines.ts'
import { appendLines, type DeploymentView, type NewLogLine } from '../../../services/deployments/index.ts'

export type Warning = DeploymentView['warnings'][number]

export type BuildLog = {
  step(name: string): void
  /** How long each step has taken so far, without the time in the queue. */
  steps(): { name: string; durationMs: number }[]
  system(text: string): void
  /** Logs a warning and adds it to the deployment's `warnings`. */
  warn(warning: Warning): void
  /** The warnings so far. */
  warnings(): Warning[]
  output(stream: 'stdout' | 'stderr', chunk: Buffer): void
  /** Writes the last line of a command if it is unterminated. */
  endCommand(): void
  close(): Promise<void>
}

const flushMs = 200
const maxLinesPerWrite = 5_000
const maxBytes = 10 << 20
// Even an empty line is a database row.
const maxLines = 100_000
// Warnings are part of every response and event about the deployment.
const maxWarnings = 50
const maxWarningLength = 500

/** `hostDirectory` is a path prefix on this machine to hide from customers. */
export function createBuildLog(
  db: Database,
  deploymentId: string,
  { secrets, hostDirectory }: { secrets: string[]; hostDirectory: string },
): BuildLog {
  const maskLine = createLineCleaner(secrets)
  const clean = (text: string) => maskLine(text).replaceAll(hostDirectory, '…')
  const warnings: Warning[] = []
  let droppedWarnings = 0
  let step = 'clone'
  let sinceMs = Date.now()
  const durationsMs = new Map([[step, 0]])
  let queue: NewLogLine[] = []
  let bytes = 0
  let lines = 0
  let isFull = false
  let flushing = Promise.resolve()
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  const partial = { stdout: '', stderr: '' }

  function count(): void {
    const nowMs = Date.now()
    durationsMs.set(step, (durationsMs.get(step) ?? 0) + nowMs - sinceMs)
    sinceMs = nowMs
  }

  /** Returns false if the line was dropped. */
  function push(stream: NewLogLine['stream'], text: string): boolean {
    if (isFull) return false
    bytes += text.length
    if (bytes > maxBytes || ++lines > maxLines) {
      isFull = true
      const limit = bytes > maxBytes ? '10 MB' : `${maxLines} lines`
      queue.push({
        stream: 'system',
        step,
        text: `The log is longer than ${limit}; the rest is cut.`,
        at: new Date(),
      })
      return false
    }
    queue.push({ stream, step, text: clean(text), at: new Date() })
    return true
  }

  // One write at a time keeps the lines in order. Lines of a failed write are retried with the next ones.
  function flush(): Promise<void> {
    flushing = flushing.then(async () => {
      while (queue.length > 0) {
        const batch = queue.slice(0, maxLinesPerWrite)
        const written = await appendLines(db, deploymentId, batch).then(
          () => true,
          () => false,
        )
        if (!written) return
        queue = queue.slice(batch.length)
      }
    })
    return flushing
  }
  const timer = setInterval(flush, flushMs)

  function endCommand(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = partial[stream] + decoders[stream].end()
      partial[stream] = ''
      if (rest !== '') push(stream, rest)
    }
  }

  return {
    step(name) {
      count()
      step = name
    },
    steps() {
      count()
      return [...durationsMs].filter(([name]) => name !== 'queue').map(([name, durationMs]) => ({ name, durationMs }))
    },
    system: (text) => void push('system', text),
    warn({ code, message, file, line }) {
      const text = clean(message).slice(0, maxWarningLength)
      const place = file === undefined ? '' : `${file}${line === undefined ? '' : `, line ${line}`}: `
      if (warnings.length === maxWarnings) return void droppedWarnings++
      push('system', `Warning: ${place}${text}`)
      warnings.push({ code, message: text, ...(file !== undefined && { file }), ...(line !== undefined && { line }) })
    },
    warnings() {
      const message = `${droppedWarnings} more warnings are not listed.`
      return droppedWarnings === 0 ? [...warnings] : [...warnings, { code: 'warnings_dropped', message }]
    },
    output(stream, chunk) {
      if (isFull) return
      const text = partial[stream] + decoders[stream].write(chunk)
      partial[stream] = consumeLines(text, (line) => push(stream, line.replace(/\r$/, ''))).slice(-maxLineLength * 2)
    },
    endCommand,
    async close() {
      clearInterval(timer)
      endCommand()
      for (let attempt = 0; attempt < 5 && (attempt === 0 || queue.length > 0); attempt++) {
        if (attempt > 0) await sleep(flushMs)
        await flush()
      }
    },
  }
}
