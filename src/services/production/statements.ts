// The edges that have followed production, in SQL.
import { isFree, leaseEnd } from '../../platform/database/lease.ts'
import { int4, int8, statement, text, textArray, timestamptz } from '../../platform/database/statement.ts'

// A lease that ended so long ago is nobody's any more.
const forgottenAfter = `interval '10 minutes'`

const isLive = (edge: string) => `NOT ${isFree(`${edge}.leased_until`)}`
/** Whether all live edges have switched to an entry. */
const isSwitched = (entry: string) => `NOT EXISTS (
  SELECT 1 FROM edge e WHERE ${isLive('e')} AND NOT EXISTS (
    SELECT 1 FROM edge_switch s WHERE s.production_id = ${entry}.id AND s.edge_id = e.id))`

/** Names of the live edges that have not switched to what is production of the project. */
export const selectLaggingEdges = statement('production.waitedFor', {
  reason: 'join in one statement',
  in: { projectId: text() },
  out: { name: text() },
  sql: (p) => `
    SELECT e.name FROM production p JOIN edge e ON ${isLive('e')}
    WHERE p.project_id = ${p.projectId} AND p.until IS NULL AND p.served_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM edge_switch s WHERE s.production_id = p.id AND s.edge_id = e.id)
    ORDER BY e.name, e.id`,
})

export const renewEdge = statement('production.renewEdge', {
  reason: 'lease',
  in: { id: text(), name: text(), leaseMs: int4() },
  out: { id: text() },
  sql: (p) => `
    WITH forgotten AS (DELETE FROM edge WHERE leased_until < now() - ${forgottenAfter} AND id <> ${p.id})
    INSERT INTO edge (id, name, leased_until) VALUES (${p.id}, ${p.name}, ${leaseEnd(p.leaseMs)})
    ON CONFLICT (id) DO UPDATE SET leased_until = EXCLUDED.leased_until RETURNING id`,
})

/** Notes what an edge shows as production of projects; what is no longer wanted, or switched everywhere, is not noted. */
export const recordSwitches = statement('production.recordSwitches', {
  reason: 'lease',
  in: { edgeId: text(), projectIds: textArray(), deploymentIds: textArray() },
  out: { id: int8() },
  sql: (p) => `
    INSERT INTO edge_switch (production_id, edge_id)
    SELECT p.id, ${p.edgeId} FROM unnest(${p.projectIds}, ${p.deploymentIds}) AS shown(project_id, deployment_id)
    JOIN production p USING (project_id, deployment_id)
    WHERE p.until IS NULL AND p.served_at IS NULL
    ON CONFLICT DO NOTHING RETURNING production_id AS id`,
})

/** Ends the switches that every live edge has made. */
export const settleSwitches = statement('production.settleSwitches', {
  reason: 'lease',
  in: {},
  out: { deploymentId: text(), servedAt: timestamptz() },
  sql: () => `
    WITH settled AS (
      UPDATE production SET served_at = now()
      WHERE until IS NULL AND served_at IS NULL AND ${isSwitched('production')} AND EXISTS (SELECT 1 FROM edge e WHERE ${isLive('e')})
      RETURNING id, deployment_id, served_at),
    forgotten AS (
      DELETE FROM edge_switch s WHERE s.production_id IN (SELECT id FROM settled) OR NOT EXISTS (
        SELECT 1 FROM production p WHERE p.id = s.production_id AND p.until IS NULL AND p.served_at IS NULL))
    SELECT deployment_id AS "deploymentId", served_at AS "servedAt" FROM settled`,
})
