// Explains a failed build: what failed, the log line that says why, and what to do about it.
import type { Db } from '../../../platform/database/database.ts'
import { type Failure, lastLinesOf } from '../../../services/deployments/index.ts'
import { findErrorLine, maxLines } from './error-line.ts'
import type { BuildFailure } from './failure.ts'
import { maxSearched, remedyFor } from './remedies.ts'

/** System lines after which output is missing. */
const truncationNotices = ['The log is longer than', 'The output is longer than', 'The output comes too fast']

/** Reads the written log, where secrets are masked and lines have numbers. */
export async function explain(db: Db, deploymentId: string, { code, message, output }: BuildFailure): Promise<Failure> {
  if (!output) return { code, message }
  const lines = await lastLinesOf(db, deploymentId, output.step, maxLines)
  const printed = lines.filter(({ stream }) => stream !== 'system')
  const isWhole = !lines.some(
    ({ stream, text }) => stream === 'system' && truncationNotices.some((cut) => text.startsWith(cut)),
  )
  const errorLine = findErrorLine(printed, isWhole)
  const withoutLine = printed.length === 0 && isWhole ? `${message}. It printed nothing` : message
  const text = printed.map(({ text }) => text).join('\n')
  const remedy = output.access && remedyFor(text.slice(-maxSearched), output.access)
  const summary = errorLine
    ? `${message}${errorLine.isError ? ': ' : '. It last printed: '}${errorLine.line}`
    : withoutLine
  const sentence = errorLine && !remedy ? summary : `${summary.replace(/[.:]$/, '')}.`
  return {
    code,
    message: remedy ? `${sentence} ${remedy}` : sentence,
    ...(errorLine && { excerpt: errorLine.excerpt, logLine: errorLine.position }),
  }
}
