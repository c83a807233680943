// The addresses of ALIAS records in SQL: as lines of a zone, and written many at once.

import { queueJobs } from '../../../jobs/statements.ts'
import { columnsOf, insertedFrom, omit, replaced } from '../../../platform/database/columns.ts'
import { int4, int8, jsonb, statement, text, textArray, timestamptz } from '../../../platform/database/statement.ts'

/** The type, in a line of records, of an address that an ALIAS is answered with. Without any it has one line with `-`. */
export const aliasedType = 'ALIASED'
// As short as that of the addresses that the nameservers add. The same at every lookup: what a resolver tells is what is
// left of a ttl, and each change would be a new version of the zone.
const aliasedTtl = 60

/** The lines behind that of an ALIAS, for statements that read zones; null while nothing is known. */
export const aliasLines = (zoneId: string, name: string) => `(
  SELECT string_agg(concat_ws(' ', '${aliasedType}', ${aliasedTtl}, a.name, COALESCE(x.address, '-')), E'\\n' ORDER BY x.at)
  FROM alias_answer a LEFT JOIN LATERAL unnest(a.addresses) WITH ORDINALITY AS x(address, at) ON true
  WHERE a.domain_id = ${zoneId} AND a.name = ${name} AND a.resolved_at IS NOT NULL)`

const answer = columnsOf('AliasAnswer')

export type AliasRow = {
  name: string
  target: string
  addresses: readonly string[]
  resolvedAt: Date | null
  dueAt: Date
  failures: number
}

/** Notes the names of a zone whose answers change, in the transaction that raises its serial. */
export const noteChangedNames = statement('dns.note-changed-names', {
  reason: 'function of the database',
  in: { zoneId: text(), names: textArray() },
  out: { noted: text() },
  sql: (p) => `SELECT note_zone_change(${p.zoneId}, ${p.names})::text AS noted`,
})

export const writeAliasRows = statement('dns.write-aliases', {
  reason: 'list as one parameter',
  in: { zoneId: text(), rows: jsonb<readonly AliasRow[]>() },
  out: { count: int4() },
  sql: (p) => `
    WITH written AS (
      INSERT INTO alias_answer ${insertedFrom(answer, `jsonb_to_recordset(${p.rows})`, { domainId: p.zoneId })}
      WHERE EXISTS (SELECT 1 FROM domain d WHERE d.id = ${p.zoneId})
      ON CONFLICT (domain_id, name) DO UPDATE SET ${replaced(omit(answer, ['domainId', 'name']))}
      RETURNING 1)
    SELECT count(*)::int AS count FROM written`,
})

/** Queues the jobs of zones whose lookups are overdue, because their jobs were given up. */
export const queueOverdueAliases = statement('dns.queue-overdue-aliases', {
  reason: 'INSERT … SELECT',
  in: { before: timestamptz() },
  out: { id: int8() },
  sql: (p) => `
    ${queueJobs(`SELECT DISTINCT 'alias', a.domain_id, jsonb_build_object('domainId', a.domain_id), now()
      FROM alias_answer a WHERE a.due_at < ${p.before}`)}
    RETURNING id`,
})
