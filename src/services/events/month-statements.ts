// SQL statements for the monthly tables of the event log. SQL functions create and drop the tables.
import { int4, statement, text, timestamptz } from '../../platform/database/statement.ts'

export const createMonths = statement('events.make_months', {
  reason: 'not in Prisma',
  in: { at: timestamptz() },
  out: { made: int4() },
  sql: (p) => `SELECT make_event_months(${p.at}) AS made`,
})

export const dropMonths = statement('events.drop_months', {
  reason: 'function of the database',
  in: { at: timestamptz(), kept: int4() },
  out: { dropped: int4() },
  sql: (p) => `SELECT drop_event_months(${p.at}, ${p.kept}) AS dropped`,
})

/** Deletes some old events from a table that also has newer ones. */
export const deleteOldEvents = statement('events.delete_old', {
  reason: 'function of the database',
  in: { at: timestamptz(), kept: int4(), limit: int4() },
  out: { id: text() },
  sql: (p) => `
    DELETE FROM event WHERE id IN (
      SELECT id FROM event
      WHERE id < (SELECT event_id_at(date_trunc('month', ${p.at} AT TIME ZONE 'UTC') - ${p.kept} * interval '1 month'))
      ORDER BY id LIMIT ${p.limit})
    RETURNING id`,
})
