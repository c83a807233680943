// The months of the event log in SQL. Making and dropping their tables is done by functions of the database.
import { int4, statement, text, timestamptz } from '../../platform/database/statement.ts'

export const createMonths = statement('events.make_months', {
  reason: 'function of the database',
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

/** Some events of months that are over, in a table that is kept for others. */
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
