// SQL statements of server instances and their runners.
import { isFree, leaseEnd } from '../../platform/database/lease.ts'
import { boolean, int4, int8, optional, statement, text, textArray } from '../../platform/database/statement.ts'

/** Instances from this slot on are leaving their node: they serve until a replacement is healthy. */
export const firstLeavingSlot = 100

const barred = `(a.suspended_at IS NOT NULL OR EXISTS (
  SELECT 1 FROM takedown t WHERE t.project_id = p.id AND t.host IS NULL AND t.ended_at IS NULL))`
const isRegular = (slot: string) => `${slot} < ${firstLeavingSlot}`
/** Whether the runner of an instance is lost. */
const orphaned = (node: string) =>
  `NOT EXISTS (SELECT 1 FROM runner r WHERE r.node = ${node} AND NOT ${isFree('r.leased_until')})`

/** Renews or starts the lease of a runner. Returns whether instances wait for a node or have lost theirs. */
export const renewRunner = statement('instances.renewRunner', {
  reason: 'lease',
  in: { node: text(), address: text(), draining: boolean(), leaseMs: int4() },
  out: { unplaced: boolean(), orphaned: boolean() },
  sql: (p) => `
    WITH renewed AS (
      INSERT INTO runner (node, address, draining, leased_until)
      VALUES (${p.node}, ${p.address}, ${p.draining}, ${leaseEnd(p.leaseMs)})
      ON CONFLICT (node) DO UPDATE
      SET address = EXCLUDED.address, draining = EXCLUDED.draining, leased_until = EXCLUDED.leased_until)
    SELECT EXISTS (SELECT 1 FROM instance WHERE node IS NULL) AS unplaced,
      EXISTS (SELECT 1 FROM instance i WHERE i.node <> ${p.node} AND ${orphaned('i.node')}) AS orphaned`,
})

/**
 * Adds missing instances that serve production, for all projects or those of the given event subjects (ids of projects,
 * deployments, accounts and takedowns).
 */
export const wantProduction = statement('instances.wantProduction', {
  reason: 'lease',
  in: { subjects: optional(textArray()) },
  out: { deploymentId: text() },
  sql: (p) => `
    INSERT INTO instance (deployment_id, slot)
    SELECT d.id, slot.n FROM project p
    JOIN account a ON a.id = p.account_id
    JOIN deployment d ON d.id = p.current_deployment_id
    CROSS JOIN LATERAL generate_series(0, p.instances - 1) AS slot(n)
    WHERE p.server AND d.state = 'READY' AND NOT ${barred} AND (${p.subjects} IS NULL OR p.id IN (
      SELECT unnest(${p.subjects})
      UNION SELECT x.project_id FROM deployment x WHERE x.id = ANY(${p.subjects})
      UNION SELECT x.id FROM project x WHERE x.account_id = ANY(${p.subjects})
      UNION SELECT x.project_id FROM takedown x WHERE x.id = ANY(${p.subjects})))
    ON CONFLICT DO NOTHING RETURNING deployment_id AS "deploymentId"`,
})

/** Requests an instance of a deployment for a visitor. Has no effect if there is one, or the deployment is blocked. */
export const wantOnDemand = statement('instances.wantOnDemand', {
  reason: 'lease',
  in: { deploymentId: text() },
  out: { deploymentId: text() },
  sql: (p) => `
    INSERT INTO instance (deployment_id, slot)
    SELECT d.id, 0 FROM deployment d JOIN project p ON p.id = d.project_id JOIN account a ON a.id = p.account_id
    WHERE d.id = ${p.deploymentId} AND d.state = 'READY' AND NOT ${barred}
    ON CONFLICT DO NOTHING RETURNING deployment_id AS "deploymentId"`,
})

/** Serializes placement, so that each process sees the placements of the others. */
export const lockPlacement = statement('instances.lockPlacement', {
  reason: 'lease',
  in: {},
  out: { locked: text() },
  sql: () => `SELECT pg_advisory_xact_lock(hashtextextended('berth instance placement', 0))::text AS locked`,
})

/**
 * Assigns the oldest instance without a node (with `takeOver`, also one of a lost node) to the runner with the fewest
 * instances of its deployment, then with the fewest instances overall.
 */
export const placeInstance = statement('instances.place', {
  reason: 'lease',
  in: { takeOver: boolean() },
  out: { deploymentId: text() },
  sql: (p) => `
    WITH free AS (
      SELECT i.deployment_id, i.slot FROM instance i
      WHERE ${isRegular('i.slot')} AND (i.node IS NULL OR (${p.takeOver} AND ${orphaned('i.node')}))
      ORDER BY i.created_at, i.deployment_id, i.slot LIMIT 1 FOR UPDATE OF i),
    best AS (
      SELECT free.deployment_id, free.slot, r.node, r.address FROM free CROSS JOIN runner r
      WHERE NOT r.draining AND NOT ${isFree('r.leased_until')}
      ORDER BY (SELECT count(*) FROM instance o WHERE o.node = r.node AND o.deployment_id = free.deployment_id),
        (SELECT count(*) FROM instance o WHERE o.node = r.node), random() LIMIT 1)
    UPDATE instance i
    SET node = best.node, address = best.address, state = 'starting', reason = NULL, term = nextval('instance_term_seq')
    FROM best WHERE i.deployment_id = best.deployment_id AND i.slot = best.slot
    RETURNING i.deployment_id AS "deploymentId"`,
})

/** Deletes lost runners and the instances that were leaving them. Place their other instances first. */
export const deleteLostRunners = statement('instances.deleteLostRunners', {
  reason: 'lease',
  in: {},
  out: { deploymentId: text() },
  sql: () => `
    WITH lost AS (
      DELETE FROM runner r WHERE ${isFree('r.leased_until')}
        AND NOT EXISTS (SELECT 1 FROM instance i WHERE i.node = r.node AND ${isRegular('i.slot')}))
    DELETE FROM instance i WHERE NOT ${isRegular('i.slot')} AND ${orphaned('i.node')}
    RETURNING i.deployment_id AS "deploymentId"`,
})

export type Duty = 'prove' | 'keep' | 'serve' | 'replaced' | 'surplus' | 'halt' | 'drop'

/**
 * The instances of a node with the action for each. `prove`: its build waits for its first response. `keep`: it serves
 * production, or did and edges may still send visitors. `serve`: it runs on demand; `replaced`: likewise, while another
 * deployment serves production. `surplus`: it is leaving or beyond the wanted number. `halt`: it is blocked. `drop`:
 * its deployment failed.
 */
export const readHeldInstances = statement('instances.held', {
  reason: 'lease',
  in: { node: text() },
  out: { deploymentId: text(), slot: int4(), term: int8(), state: text(), duty: text<Duty>() },
  sql: (p) => `
    SELECT i.deployment_id AS "deploymentId", i.slot, i.term, i.state, CASE
      WHEN d.state = 'BUILDING' THEN 'prove'
      WHEN d.state <> 'READY' THEN 'drop'
      WHEN ${barred} THEN 'halt'
      WHEN NOT ${isRegular('i.slot')} THEN CASE WHEN production.here AND NOT EXISTS (
        SELECT 1 FROM instance o WHERE o.deployment_id = d.id AND ${isRegular('o.slot')} AND o.state = 'healthy')
        THEN 'keep' ELSE 'surplus' END
      WHEN production.here THEN CASE WHEN i.slot < p.instances THEN 'keep' ELSE 'surplus' END
      WHEN i.slot > 0 THEN 'surplus'
      WHEN p.current_deployment_id IS NOT NULL THEN 'replaced'
      ELSE 'serve' END AS duty
    FROM instance i
    JOIN deployment d ON d.id = i.deployment_id JOIN project p ON p.id = d.project_id JOIN account a ON a.id = p.account_id
    CROSS JOIN LATERAL (SELECT EXISTS (
      SELECT 1 FROM production n WHERE n.project_id = p.id AND n.deployment_id = d.id
        AND n.id >= COALESCE((SELECT max(s.id) FROM production s WHERE s.project_id = p.id AND s.served_at IS NOT NULL), 0)
    )) AS production(here)
    WHERE i.node = ${p.node}`,
})

/** Makes all instances leave the node, except proofs, because a build waits for them. */
export const leaveNode = statement('instances.leaveNode', {
  reason: 'lease',
  in: { node: text() },
  out: { deploymentId: text() },
  sql: (p) => `
    UPDATE instance i SET slot = slot + ${firstLeavingSlot} FROM deployment d
    WHERE i.node = ${p.node} AND ${isRegular('i.slot')} AND d.id = i.deployment_id AND d.state = 'READY'
      AND NOT EXISTS (SELECT 1 FROM instance o
        WHERE o.deployment_id = i.deployment_id AND o.slot = i.slot + ${firstLeavingSlot})
    RETURNING i.deployment_id AS "deploymentId"`,
})

/**
 * Makes one instance leave a node that has at least two more of its deployment than another node, to limit the damage
 * of losing a node. Moves one deployment at a time, and only while all its instances are healthy.
 */
export const spreadInstance = statement('instances.spread', {
  reason: 'lease',
  in: { node: text() },
  out: { deploymentId: text() },
  sql: (p) => `
    WITH crowded AS (
      SELECT i.deployment_id, max(i.slot) AS slot, count(*) AS here
      FROM instance i JOIN deployment d ON d.id = i.deployment_id
      WHERE i.node = ${p.node} AND ${isRegular('i.slot')} AND d.state = 'READY'
      GROUP BY i.deployment_id HAVING count(*) > 1),
    chosen AS (
      SELECT c.deployment_id, c.slot FROM crowded c
      WHERE NOT EXISTS (SELECT 1 FROM instance o WHERE o.deployment_id = c.deployment_id
          AND (o.state <> 'healthy' OR NOT ${isRegular('o.slot')}))
        AND EXISTS (SELECT 1 FROM runner r WHERE r.node <> ${p.node} AND NOT r.draining AND NOT ${isFree('r.leased_until')}
          AND c.here > 1 + (SELECT count(*) FROM instance o WHERE o.node = r.node AND o.deployment_id = c.deployment_id))
      ORDER BY c.deployment_id LIMIT 1)
    UPDATE instance i SET slot = i.slot + ${firstLeavingSlot} FROM chosen
    WHERE i.deployment_id = chosen.deployment_id AND i.slot = chosen.slot
    RETURNING i.deployment_id AS "deploymentId"`,
})

export const servedInstance = {
  deploymentId: text(),
  slot: int4(),
  term: int8(),
  node: text(),
  address: text(),
  state: text<'starting' | 'healthy' | 'unhealthy' | 'unavailable' | 'leaving'>(),
}

/** The instances that have a node, of all or some deployments. */
export const readServedInstances = statement('instances.served', {
  reason: 'snapshot for an engine',
  in: { deploymentIds: optional(textArray()) },
  out: servedInstance,
  sql: (p) => `
    SELECT deployment_id AS "deploymentId", slot, term, node, address, state FROM instance
    WHERE node IS NOT NULL AND (${p.deploymentIds} IS NULL OR deployment_id = ANY(${p.deploymentIds}))`,
})
