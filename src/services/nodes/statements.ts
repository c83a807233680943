// SQL statements of nodes; heartbeats use the clock of the database.
import { boolean, int4, jsonb, optional, statement, text, textArray } from '../../platform/database/statement.ts'
import type { Load } from './load.ts'

/** A node without a heartbeat for this long is lost: three heartbeats and some margin. */
export const lostAfter = `interval '18 seconds'`

/**
 * Writes the row of this process and returns whether to drain. Deletes nodes with the same name and roles that were
 * lost before this process started, because it replaces them.
 */
export const beatNode = statement('nodes.beat', {
  reason: 'lease',
  in: {
    id: text(),
    name: text(),
    roles: textArray(),
    version: text(),
    address: optional(text()),
    load: jsonb<Load>(),
    /** Used, like `drained`, only if the row is inserted, perhaps again. */
    ageSeconds: int4(),
    drained: boolean(),
    stopping: boolean(),
  },
  out: { draining: boolean() },
  sql: (p) => `
    WITH own AS (
      INSERT INTO node (id, name, roles, version, address, load, draining, started_at)
      VALUES (${p.id}, ${p.name}, ${p.roles}, ${p.version}, ${p.address}, ${p.load}, ${p.drained} OR ${p.stopping},
        now() - ${p.ageSeconds} * interval '1 second')
      ON CONFLICT (id) DO UPDATE SET heartbeat_at = now(), load = excluded.load,
        draining = node.draining OR ${p.stopping}
      RETURNING name, roles, started_at, draining
    ), replaced AS (
      DELETE FROM node USING own WHERE node.name = own.name AND node.roles = own.roles
        AND node.heartbeat_at < LEAST(own.started_at, now() - ${lostAfter}))
    SELECT draining FROM own`,
})

export const selectLost = statement('nodes.lost', {
  reason: 'clock of the database',
  in: {},
  out: { id: text() },
  sql: () => `SELECT id FROM node WHERE heartbeat_at < now() - ${lostAfter}`,
})

/** The number of nodes in each state. */
export const countNodes = statement('nodes.count', {
  reason: 'aggregate with a condition',
  in: {},
  out: { active: int4(), draining: int4(), lost: int4() },
  sql: () => `
    SELECT count(*) FILTER (WHERE NOT lost AND NOT draining)::integer AS active,
      count(*) FILTER (WHERE NOT lost AND draining)::integer AS draining, count(*) FILTER (WHERE lost)::integer AS lost
    FROM (SELECT draining, heartbeat_at < now() - ${lostAfter} AS lost FROM node) AS n`,
})
