// What a deployment tells of its failure: what failed, the line of the log that says why, and what to do about it.
import type { Db } from '../../../platform/database/database.ts'
import { type Failure, lastLinesOf } from '../../../services/deployments/index.ts'
import { findErrorLine, maxLines } from './error-line.ts'
import type { BuildFailure } from './failure.ts'
import { maxSearched, remedyFor } from './remedies.ts'

/** What follows is not in the log. */
const cuts = ['The log is longer than', 'The output is longer than', 'The output comes too fast']

/** The log must have been written. It is the source, because secrets are masked in it and its lines have numbers. */
export async function explain(db: Db, deploymentId: string, { code, message, output }: BuildFailure): Promise<Failure> {
  if (!output) return { code, message }
  const lines = await lastLinesOf(db, deploymentId, output.step, maxLines)
  const printed = lines.filter(({ stream }) => stream !== 'system')
  const isWhole = !lines.some(({ stream, text }) => stream === 'system' && cuts.some((cut) => text.startsWith(cut)))
  const found = findErrorLine(printed, isWhole)
  const nothing = printed.length === 0 && isWhole ? `${message}. It printed nothing` : message
  const text = printed.map(({ text }) => text).join('\n')
  const remedy = output.reach && remedyFor(text.slice(-maxSearched), output.reach)
  const told = found ? `${message}${found.isError ? ': ' : '. It last printed: '}${found.line}` : nothing
  const sentence = found && !remedy ? told : `${told.replace(/[.:]$/, '')}.`
  return {
    code,
    message: remedy ? `${sentence} ${remedy}` : sentence,
    ...(found && { excerpt: found.excerpt, logLine: found.position }),
  }
}
