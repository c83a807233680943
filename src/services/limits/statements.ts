// Limits in SQL that all API processes share: who they are, what they take of a minute, and what they hold open.
import { int4, int4Array, statement, text, textArray } from '../../platform/database/statement.ts'

/** A member that was not seen for longer is gone. `limit_open_elsewhere` has the same time. */
const isThere = (seenAt: string) => `${seenAt} > now() - interval '5 seconds'`

/** Says that the member is there, tells the others if it is new, and counts all. */
export const beat = statement('limits.beat', {
  reason: 'lease',
  in: { id: text() },
  out: { members: int4() },
  sql: (p) => `
    WITH mine AS (
      INSERT INTO limit_member AS m (id, seen_at) VALUES (${p.id}, now())
      ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at RETURNING m.xmax = 0 AS joined
    ), told AS (
      SELECT pg_notify('berth_limit', 'joined ' || ${p.id}) FROM mine WHERE joined
    )
    SELECT (1 + count(*) + 0 * (SELECT count(*) FROM told))::integer AS members
    FROM limit_member WHERE id <> ${p.id} AND ${isThere('seen_at')}`,
})

// What was spent is counted in any case, also above the budget.
const spent = 'excluded.taken - excluded.granted'
const granted = `least(excluded.granted, greatest(0, excluded.budget - (${spent}) - w.taken))`
const isOver = 'w.ends_at <= now()'

/**
 * Takes of the minute of each key what was spent already, and as much of what is wanted as the budget has left; spent
 * and wanted together must not exceed it. A minute that is over begins anew. The others hear of the keys in `told`.
 */
export const takeSlices = statement('limits.take', {
  reason: 'lease',
  in: {
    member: text(),
    keys: textArray(),
    budgets: int4Array(),
    spent: int4Array(),
    wanted: int4Array(),
    leftMs: int4Array(),
    told: textArray(),
  },
  out: { key: text(), granted: int4(), taken: int4(), leftMs: int4() },
  // In the order of the keys, so that two members never wait for each other.
  sql: (p) => `
    WITH taken AS (
      INSERT INTO limit_window AS w (key, ends_at, budget, taken, granted)
      SELECT key, now() + left_ms * interval '1 millisecond', budget, spent::bigint + wanted, wanted
      FROM unnest(${p.keys}, ${p.budgets}, ${p.spent}, ${p.wanted}, ${p.leftMs})
        AS asked(key, budget, spent, wanted, left_ms) ORDER BY key
      ON CONFLICT (key) DO UPDATE SET budget = excluded.budget,
        ends_at = CASE WHEN ${isOver} THEN excluded.ends_at ELSE w.ends_at END,
        granted = CASE WHEN ${isOver} THEN excluded.granted ELSE ${granted} END,
        taken = CASE WHEN ${isOver} THEN excluded.taken ELSE w.taken + ${spent} + ${granted} END
      RETURNING w.key, w.granted, least(w.taken, 2147483647)::integer AS taken,
        greatest(0, extract(epoch FROM w.ends_at - now()) * 1000)::integer AS left_ms
    ), told AS (
      SELECT pg_notify('berth_limit', 'taken ' || ${p.member} || ' ' || json_agg(json_build_array(key, taken, left_ms)))
      FROM taken WHERE key = ANY(${p.told}) HAVING count(*) > 0
    )
    SELECT key, granted, taken, left_ms AS "leftMs" FROM taken WHERE (SELECT count(*) FROM told) >= 0`,
})

/** The member holds so many of an account's waits or streams, or as many as there are left. */
export const holdOpen = statement('limits.hold', {
  reason: 'lease',
  in: { accountId: text(), kind: text(), member: text(), wanted: int4(), most: int4() },
  out: { granted: int4(), elsewhere: int4() },
  sql: (p) =>
    `SELECT granted, elsewhere FROM limit_open_hold(${p.accountId}, ${p.kind}, ${p.member}, ${p.wanted}, ${p.most})`,
})

/** What the other members hold of an account. */
export const readElsewhere = statement('limits.elsewhere', {
  reason: 'function of the database',
  in: { accountId: text(), member: text() },
  out: { waits: int4(), streams: int4() },
  sql: (p) => `
    SELECT limit_open_elsewhere(${p.accountId}, 'waits', ${p.member}) AS waits,
      limit_open_elsewhere(${p.accountId}, 'streams', ${p.member}) AS streams`,
})

/** Removes what is over: so many minutes, and what members that are gone held. */
export const deletePast = statement('limits.forget', {
  reason: 'several writes in one statement',
  in: { limit: int4() },
  out: { count: int4() },
  sql: (p) => `
    WITH windows AS (
      DELETE FROM limit_window WHERE key IN
        (SELECT key FROM limit_window WHERE ends_at < now() LIMIT ${p.limit} FOR UPDATE SKIP LOCKED) RETURNING 1
    ), members AS (
      DELETE FROM limit_member WHERE seen_at < now() - interval '1 minute' RETURNING id
    ), held AS (
      DELETE FROM limit_open o WHERE held = 0 OR NOT EXISTS (SELECT 1 FROM limit_member m WHERE m.id = o.member
        AND m.seen_at >= now() - interval '1 minute') RETURNING 1
    )
    SELECT (SELECT count(*) FROM windows)::integer AS count`,
})
