// Which host stands for which deployment: what the edge's snapshot is read from.
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
 * The projects that the subjects of events (ids of projects, deployments, accounts and takedowns, names of domains)
 * belong to, each with its domains, and those of the deployments that are READY. A project, deployment or domain that
 * was asked for and does not come back is gone.
 */
export function readTouchedEdgeHosts(db: Db, subjects: string[]): Promise<EdgeHostRow[]> {
  return touchedEdgeHosts(db, { subjects })
}
