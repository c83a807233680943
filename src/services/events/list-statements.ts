// Pages of the event log in SQL, by id.
import { selected } from '../../platform/database/columns.ts'
import type { Order } from '../../platform/database/page.ts'
import { boolean, int4, optional, statement, text, textArray } from '../../platform/database/statement.ts'
import { shownEvent } from './statements.ts'

/**
 * What a statement could see, in the numbers of events: every transaction below `max` but those that were `open`. One in
 * which too many were open counts as old as the first of them.
 */
export const selectVisibility = statement('events.seen', {
  reason: 'function of the database',
  in: {},
  out: { max: text(), open: textArray() },
  sql: () => `
    WITH s AS MATERIALIZED (SELECT pg_current_snapshot() AS now),
    running AS MATERIALIZED (SELECT event_horizon(x)::text AS xid FROM s, pg_snapshot_xip(s.now) x)
    SELECT CASE WHEN few.are THEN event_horizon(pg_snapshot_xmax(s.now)) ELSE event_horizon(pg_snapshot_xmin(s.now)) END::text
        AS max,
      CASE WHEN few.are THEN ARRAY(SELECT xid FROM running) ELSE '{}' END AS open
    FROM s, (SELECT count(*) <= 25 AS are FROM running) few`,
})

const listIn = {
  accountId: text(),
  types: optional(textArray()),
  projectIds: optional(textArray()),
  subjects: optional(textArray()),
  /** The ids of the page are behind this one. */
  after: text(),
  limit: int4(),
  /** What could be seen before, and what can be seen now. */
  seenMax: text(),
  seenOpen: textArray(),
  max: text(),
  open: textArray(),
}

type Facet = 'account_id' | 'type' | 'project_id' | 'subject'
type Places = { [K in keyof typeof listIn]: string }

const writer = 'COALESCE(e.writer, e.xid)'
const sees = (max: string, open: string) => `(${writer} < ${max}::xid8 AND ${writer} <> ALL(${open}::xid8[]))`
const among = (column: string, values: string) => `AND (${values} IS NULL OR ${column} = ANY(${values}))`

const facets = { type: 'types', project_id: 'projectIds', subject: 'subjects' } as const

/** The ids of the page first, from an index alone. Each value of a facet has its part of it. */
function idsSql(facet: Facet, order: Order, p: Places): string {
  if (facet === 'account_id') {
    return `
      SELECT id FROM event WHERE account_id = ${p.accountId} AND id ${order === 'asc' ? '>' : '<'} ${p.after}
      ORDER BY id ${order} LIMIT ${p.limit}`
  }
  // What the facet itself asks for would only be checked again.
  const types = facet === 'type' ? 'NULL' : p.types
  const projectIds = facet === 'project_id' ? 'NULL' : p.projectIds
  return `
    SELECT page.id FROM unnest(${p[facets[facet]]}) AS facet(value), LATERAL event_ids(
      ${p.accountId}, '${facet}', facet.value, ${types}, ${projectIds}, ${p.after}, '${order}', ${p.limit}) page(id)
    ORDER BY page.id ${order} LIMIT ${p.limit}`
}

const list = (facet: Facet, order: Order) =>
  statement(`events.list_${facet}_${order}`, {
    reason: 'lateral join',
    in: listIn,
    out: {
      ...shownEvent,
      /** Whether it can be seen now, and could not before. */
      fresh: boolean(),
    },
    sql: (p) => `
      SELECT ${selected(shownEvent, 'e')},
        ${sees(p.max, p.open)} AND NOT ${sees(p.seenMax, p.seenOpen)} AS fresh
      FROM event e WHERE e.id = ANY(ARRAY(${idsSql(facet, order, p)}))
        ${among('e.type', p.types)} ${among('e.project_id', p.projectIds)} ${among('e.subject', p.subjects)}
      ORDER BY e.id ${order}`,
  })

const ofOrder = (order: Order) => ({
  account_id: list('account_id', order),
  type: list('type', order),
  project_id: list('project_id', order),
  subject: list('subject', order),
})

export const eventPage = { asc: ofOrder('asc'), desc: ofOrder('desc') }
