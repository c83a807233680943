// Reads which host leads to which deployment, for the snapshot of the edge.
import type { Db } from '../../platform/database/database.ts'
import type { ValuesOf } from '../../platform/database/statement.ts'
import { type edgeHost, edgeHosts, touchedEdgeHosts } from './statements.ts'

/**
 * One host of the platform's own domain or one attached domain.
 * `deployment`: `name` is the label of a READY deployment. `project`: `name` is its production label and
 * `deploymentId` what serves production, if anything does. `domain`: `name` is a verified domain of the project.
 */
export type EdgeHostRow = ValuesOf<typeof edgeHost>

export function readEdgeHosts(db: Db): Promise<EdgeHostRow[]> {
  return edgeHosts(db, {})
}

/**
 * The projects of the event subjects (ids of projects, deployments, accounts and takedowns, names of domains), each
 * with its domains, and the READY ones of the deployments. Missing projects, deployments and domains were deleted.
 */
export function readTouchedEdgeHosts(db: Db, subjects: string[]): Promise<EdgeHostRow[]> {
  return touchedEdgeHosts(db, { subjects })
}
