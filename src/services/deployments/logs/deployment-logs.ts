// Log lines of deployments: written in bulk by the builder, read in pages and by live streams.
import type { Static } from '@sinclair/typebox'
import { type Db, violation } from '../../../platform/database/database.ts'
import type { LogLine as LogLineSchema } from '../../../schemas/deployments.ts'
import { appendLogLines, trimServerLines } from '../statements.ts'

export type LogLineView = Static<typeof LogLineSchema>

/** Lines after a number, oldest first. The caller must have checked the owner. */
export async function linesAfter(db: Db, deploymentId: string, seq: number, limit: number): Promise<LogLineView[]> {
  const found = await db.logLine.findMany({
    where: { deploymentId, seq: { gt: seq } },
    orderBy: { seq: 'asc' },
    take: limit,
  })
  return found.map(({ seq, at, stream, step, text }) => ({
    seq,
    at: at.toISOString(),
    stream: stream as LogLineView['stream'],
    step,
    text,
  }))
}

/** The newest lines of a step's last command or run, oldest first, up to the limit. */
export async function lastLinesOf(db: Db, deploymentId: string, step: string, limit: number) {
  const found = await db.logLine.findMany({
    where: { deploymentId, step },
    orderBy: { seq: 'desc' },
    take: limit,
    select: { seq: true, stream: true, text: true },
  })
  const lines = found.reverse()
  const begin = lines.findLastIndex(({ stream, text }) => stream === 'system' && text.includes('$ '))
  return lines.slice(begin + 1)
}

export type NewLogLine = Pick<LogLineView, 'stream' | 'step' | 'text'> & { at: Date; instance?: string }

// Of several instances that append at once, one wins each time.
const maxTries = 10

/** Appends lines, from the worker during the build and later from every instance of the server. */
export async function appendLines(db: Db, deploymentId: string, lines: NewLogLine[]): Promise<void> {
  if (lines.length === 0) return
  const numbered = lines.map((line, index) => ({ ...line, index: index + 1 }))
  for (let tries = 1; ; tries++) {
    try {
      await appendLogLines(db, { deploymentId, lines: numbered })
      return
    } catch (error) {
      if (violation(error)?.kind !== 'unique' || tries === maxTries) throw error
    }
  }
}

/** Deletes the oldest lines of a server beyond the newest `keepBytes`. Lines of the build stay. */
export async function trimRunLines(db: Db, deploymentId: string, keepBytes: number): Promise<void> {
  await trimServerLines(db, { deploymentId, keepBytes })
}
