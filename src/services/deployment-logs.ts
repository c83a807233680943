// Log lines of deployments: written in bulk by the builder, read in pages and by live streams.
import type { Static } from '@sinclair/typebox'
import { type Db, rows, sql } from '../db.ts'
import type { LogLine as LogLineSchema } from '../schemas/deployments.ts'

export type LogLineView = Static<typeof LogLineSchema>

/** Lines after a number, oldest first. The caller has found the deployment, and with it its owner. */
export async function linesAfter(db: Db, deploymentId: string, seq: number, limit: number): Promise<LogLineView[]> {
  const found = await rows<Omit<LogLineView, 'at'> & { at: Date }>(
    db,
    sql`SELECT seq, at, stream, step, text FROM log_line
        WHERE deployment_id = ${deploymentId} AND seq > ${seq}::int ORDER BY seq LIMIT ${limit}::int`,
  )
  return found.map(({ seq, at, stream, step, text }) => ({ seq, at: at.toISOString(), stream, step, text }))
}

export type NewLogLine = Pick<LogLineView, 'stream' | 'step' | 'text'> & { at: Date }

/** Appends lines behind those that are there. One writer at a time: the worker that holds the build's job. */
export async function appendLines(db: Db, deploymentId: string, lines: NewLogLine[]): Promise<void> {
  if (lines.length === 0) return
  const batch = lines.map((line, index) => ({ ...line, index: index + 1 }))
  await rows(
    db,
    sql`WITH last AS (SELECT coalesce(max(seq), 0) AS seq FROM log_line WHERE deployment_id = ${deploymentId})
        INSERT INTO log_line (deployment_id, seq, at, stream, step, text)
        SELECT ${deploymentId}, last.seq + l.index, l.at, l.stream, l.step, l.text
        FROM last, jsonb_to_recordset(${JSON.stringify(batch)}::jsonb)
          AS l(index int, at timestamptz, stream text, step text, text text)
        RETURNING seq`,
  )
}

/** Forgets the oldest lines that a server printed, so that the newest `keepBytes` stay; those of its build stay too. */
export async function trimRunLines(db: Db, deploymentId: string, keepBytes: number): Promise<void> {
  await rows(
    db,
    sql`DELETE FROM log_line WHERE deployment_id = ${deploymentId} AND step = 'run' AND seq <= (
          SELECT max(seq) FROM (
            SELECT seq, sum(length(text)) OVER (ORDER BY seq DESC) AS held FROM log_line
            WHERE deployment_id = ${deploymentId} AND step = 'run') line
          WHERE held > ${keepBytes}::int) RETURNING seq`,
  )
}
