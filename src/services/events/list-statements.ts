// Pages of the event log in SQL, by id.
import { pageIn } from '../../platform/facet-statements.ts'
import type { Order } from '../../platform/page.ts'
import { json, optional, statement, text, textArray, timestamptz } from '../../platform/statement.ts'

/**
 * What a statement could see, in the numbers of events: every transaction below `max` but those that were `open`. One in
 * which too many were open counts as old as the first of them.
 */
export const selectSeen = statement('events.seen', {
  reason: 'not in Prisma',
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
  since: optional(timestamptz()),
  until: optional(timestamptz()),
  ...pageIn,
}
/** Only what the first could not see, and the second can. */
const betweenIn = { seenMax: text(), seenOpen: textArray(), max: text(), open: textArray() }
const out = {
  id: text(),
  type: text(),
  createdAt: timestamptz(),
  actor: text(),
  subject: text(),
  data: json<object>(),
}

type Facet = 'type' | 'project' | 'subject'
type Places = { [K in keyof typeof listIn]: string } & Partial<{ [K in keyof typeof betweenIn]: string }>

const facets = {
  type: (p: Places) => [p.types, 'type'],
  project: (p: Places) => [p.projectIds, 'project_id'],
  subject: (p: Places) => [p.subjects, 'subject'],
} satisfies Record<Facet, (p: Places) => string[]>

/** Each value of the facet has its part of the page, read in order by its index; the other conditions are only checked. */
function listSql(facet: Facet | null, order: Order, p: Places): string {
  const [values, column] = facet ? facets[facet](p) : []
  const sees = (max: string, open: string) => `(xid < ${max}::xid8 AND xid <> ALL(${open}::xid8[]))`
  const page = `
    SELECT * FROM event WHERE account_id = ${p.accountId} ${column ? `AND ${column} = facet.value` : ''}
      AND (${p.types} IS NULL OR type = ANY(${p.types})) AND (${p.subjects} IS NULL OR subject = ANY(${p.subjects}))
      AND (${p.projectIds} IS NULL OR project_id = ANY(${p.projectIds}))
      AND (${p.since} IS NULL OR created_at >= ${p.since}) AND (${p.until} IS NULL OR created_at < ${p.until})
      ${p.max ? `AND ${sees(p.max, p.open!)} AND NOT ${sees(p.seenMax!, p.seenOpen!)}` : ''}
      AND id > ${p.above} AND id < ${p.below}
    ORDER BY id ${order} LIMIT ${p.limit}`
  return `
    SELECT e.id, e.type, e.created_at AS "createdAt", e.actor, e.subject, e.data
    FROM ${values ? `unnest(${values}) AS facet(value), LATERAL` : ''} (${page}) e
    ORDER BY e.id ${order} LIMIT ${p.limit}`
}

const newestFirst = (facet: Facet | null) =>
  statement(`events.list_${facet ?? 'account'}_desc`, {
    reason: 'not in Prisma',
    in: listIn,
    out,
    sql: (p) => listSql(facet, 'desc', p),
  })

const oldestFirst = (facet: Facet | null) =>
  statement(`events.list_${facet ?? 'account'}_asc`, {
    reason: 'not in Prisma',
    in: { ...listIn, ...betweenIn },
    out,
    sql: (p) => listSql(facet, 'asc', p),
  })

const byFacet = <S>(define: (facet: Facet | null) => S) => ({
  account: define(null),
  type: define('type'),
  project: define('project'),
  subject: define('subject'),
})

export const listNewest = byFacet(newestFirst)
export const listOldest = byFacet(oldestFirst)
