// Production switches: each edge has a lease and reports what it serves; the last one completes the switch.
import { type Database, type Db, inTransaction } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { rowOf, viewDeployment, withProject } from '../deployments/index.ts'
import { append } from '../events/index.ts'
import { recordSwitches, renewEdge, settleSwitches } from './statements.ts'

/** An edge process: its own id, and the name of its node. */
export type EdgeNode = { id: string; name: string }

/** Switches don't wait for an edge that has not renewed its lease for this long. */
export const edgeLeaseMs = 10_000

export async function renewEdgeLease(db: Db, { id, name }: EdgeNode, leaseMs = edgeLeaseMs): Promise<void> {
  await renewEdge(db, { id, name, leaseMs })
}

export async function endEdgeLease(db: Db, { id }: EdgeNode): Promise<void> {
  await db.edge.deleteMany({ where: { id } })
}

/** Records what an edge serves as production, by project. */
export async function recordShown(db: Db, { id: edgeId }: EdgeNode, shown: ReadonlyMap<string, string>): Promise<void> {
  await recordSwitches(db, { edgeId, projectIds: [...shown.keys()], deploymentIds: [...shown.values()] })
}

/** Completes the switches that every live edge has made, with an event for each. */
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
