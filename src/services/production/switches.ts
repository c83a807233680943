// Edges that follow production: each has a lease, says what it shows, and the last one ends the switch.
import { type Database, type Db, inTransaction } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { rowOf, viewDeployment, withProject } from '../deployments/index.ts'
import { append } from '../events/index.ts'
import { noteSwitches, renewEdge, settleSwitches } from './statements.ts'

/** A process with the role edge, by an id of its own and the name of its node. */
export type EdgeNode = { id: string; name: string }

/** An edge that has not renewed its lease for this long is not waited for. */
export const edgeLeaseMs = 10_000

export async function renewEdgeLease(db: Db, { id, name }: EdgeNode, leaseMs = edgeLeaseMs): Promise<void> {
  await renewEdge(db, { id, name, leaseMs })
}

export async function endEdgeLease(db: Db, { id }: EdgeNode): Promise<void> {
  await db.edge.deleteMany({ where: { id } })
}

/** What an edge shows as production, by project. */
export async function noteShown(db: Db, { id: edgeId }: EdgeNode, shown: ReadonlyMap<string, string>): Promise<void> {
  await noteSwitches(db, { edgeId, projectIds: [...shown.keys()], deploymentIds: [...shown.values()] })
}

/** Ends the switches that every live edge has made, with an event for each: visitors get the deployment everywhere. */
export async function endSwitches(db: Database, urls: Urls): Promise<void> {
  await inTransaction(db, async (db) => {
    const served = await settleSwitches(db, {})
    if (served.length === 0) return
    const where = { id: { in: served.map(({ deploymentId }) => deploymentId) } }
    const rows = await db.deployment.findMany({ where, include: withProject })
    await append(
      db,
      rows.map((row) => ({
        accountId: row.accountId,
        projectId: row.projectId,
        type: 'deployment.served' as const,
        actor: 'system',
        subject: row.id,
        data: viewDeployment(urls, rowOf(row)),
      })),
    )
  })
}
