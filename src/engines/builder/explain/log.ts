// The log of one build: lines with secrets masked, written in batches, truncated at a limit.
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../platform/database/database.ts'
import { consumeLines, createLineCleaner, maxLineLength } from '../../../platform/observe/log-lines.ts'
import { appendLines, type DeploymentView, type NewLogLine } from '../../../services/deployments/index.ts'

export type Warning = DeploymentView['warnings'][number]

export type BuildLog = {
  step(name: string): void
  /** How long each step took until now, without waiting in the queue. */
  steps(): { name: string; durationMs: number }[]
  system(text: string): void
  /** Something that the project asked for and that is not done; the deployment has it among its `warnings`. */
  warn(warning: Warning): void
  /** Those until now. */
  warnings(): Warning[]
  output(stream: 'stdout' | 'stderr', chunk: Buffer): void
  /** Writes the unterminated lines of a command. */
  endCommand(): void
  close(): Promise<void>
}

const flushMs = 200
const linesAtOnce = 5_000
const maxBytes = 10 << 20
// Each line is a row of the database, even an empty one.
const maxLines = 100_000
// They are in every answer and event about the deployment.
const maxWarnings = 50
const maxWarningLength = 500

/** `hostDirectory` is the part of paths on this machine that customers need not see. */
export function createBuildLog(
  db: Database,
  deploymentId: string,
  { secrets, hostDirectory }: { secrets: string[]; hostDirectory: string },
): BuildLog {
  const cleaned = createLineCleaner(secrets)
  const clean = (text: string) => cleaned(text).replaceAll(hostDirectory, '…')
  const warnings: Warning[] = []
  let unlisted = 0
  let step = 'clone'
  let sinceMs = Date.now()
  const tookMs = new Map([[step, 0]])
  let waiting: NewLogLine[] = []
  let bytes = 0
  let lines = 0
  let cut = false
  let flushing = Promise.resolve()
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  const open = { stdout: '', stderr: '' }

  function count(): void {
    const nowMs = Date.now()
    tookMs.set(step, (tookMs.get(step) ?? 0) + nowMs - sinceMs)
    sinceMs = nowMs
  }

  /** False: it was dropped. */
  function push(stream: NewLogLine['stream'], text: string): boolean {
    if (cut) return false
    bytes += text.length
    if (bytes > maxBytes || ++lines > maxLines) {
      cut = true
      const limit = bytes > maxBytes ? '10 MB' : `${maxLines} lines`
      waiting.push({
        stream: 'system',
        step,
        text: `The log is longer than ${limit}; the rest is cut.`,
        at: new Date(),
      })
      return false
    }
    waiting.push({ stream, step, text: clean(text), at: new Date() })
    return true
  }

  // One write at a time keeps the lines in order; lines of a failed write are written with the next ones.
  function flush(): Promise<void> {
    flushing = flushing.then(async () => {
      while (waiting.length > 0) {
        const batch = waiting.slice(0, linesAtOnce)
        const written = await appendLines(db, deploymentId, batch).then(
          () => true,
          () => false,
        )
        if (!written) return
        waiting = waiting.slice(batch.length)
      }
    })
    return flushing
  }
  const timer = setInterval(flush, flushMs)

  function endCommand(): void {
    for (const stream of ['stdout', 'stderr'] as const) {
      const rest = open[stream] + decoders[stream].end()
      open[stream] = ''
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
      return [...tookMs].filter(([name]) => name !== 'queue').map(([name, durationMs]) => ({ name, durationMs }))
    },
    system: (text) => void push('system', text),
    warn({ code, message, file, line }) {
      const text = clean(message).slice(0, maxWarningLength)
      const place = file === undefined ? '' : `${file}${line === undefined ? '' : `, line ${line}`}: `
      if (warnings.length === maxWarnings) return void unlisted++
      push('system', `Warning: ${place}${text}`)
      warnings.push({ code, message: text, ...(file !== undefined && { file }), ...(line !== undefined && { line }) })
    },
    warnings() {
      const message = `${unlisted} more warnings are not listed.`
      return unlisted === 0 ? [...warnings] : [...warnings, { code: 'warnings_dropped', message }]
    },
    output(stream, chunk) {
      if (cut) return
      const text = open[stream] + decoders[stream].write(chunk)
      open[stream] = consumeLines(text, (line) => push(stream, line.replace(/\r$/, ''))).slice(-maxLineLength * 2)
    },
    endCommand,
    async close() {
      clearInterval(timer)
      endCommand()
      for (let attempt = 0; attempt < 5 && (attempt === 0 || waiting.length > 0); attempt++) {
        if (attempt > 0) await sleep(flushMs)
        await flush()
      }
    },
  }
}
