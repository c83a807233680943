// The installation's nodes, for the operator: listing and draining them.
import type { Static } from '@sinclair/typebox'
import type { Node as NodeRow } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { Node as NodeSchema } from '../../schemas/nodes.ts'
import type { Load } from './load.ts'
import { selectLost } from './statements.ts'

export type NodeView = Static<typeof NodeSchema>

const dayMs = 24 * 60 * 60_000

const viewRow = viewOf(NodeSchema)

function view(row: NodeRow, lost: ReadonlySet<string>): NodeView {
  return viewRow(row, {
    load: row.load as Load,
    state: lost.has(row.id) ? 'LOST' : row.draining ? 'DRAINING' : 'ACTIVE',
  })
}

/** Uses the clock of the database, like heartbeats. */
async function readLost(db: Db): Promise<ReadonlySet<string>> {
  return new Set((await selectLost(db, {})).map(({ id }) => id))
}

export async function listNodes(db: Db, page: PageRequest): Promise<PageOf<NodeView>> {
  const [lost, found] = [await readLost(db), await db.node.findMany(byId(page, 'nod'))]
  const viewOf = (row: NodeRow) => view(row, lost)
  return pageOf(found, page, viewOf, (row) => [row.id])
}

export async function listAllNodes(db: Db): Promise<NodeView[]> {
  const [lost, found] = [await readLost(db), await db.node.findMany({ orderBy: [{ name: 'asc' }, { id: 'asc' }] })]
  return found.map((row) => view(row, lost))
}

export async function findNode(db: Db, id: string): Promise<NodeView> {
  const [lost, found] = [await readLost(db), await db.node.findUnique({ where: { id } })]
  if (!found) throw new Fault('not_found', `There is no node ${id}.`)
  return view(found, lost)
}

/** The version for preconditions, without the fields that change with every heartbeat. */
export const versionOfNode = ({ id, state }: NodeView) => ({ id, state })

export type NodeChange = { id: string; draining: boolean; precondition(version: unknown): void }

/** Drains or undrains one node. Throws if it is lost. */
export async function changeNode(db: Db, { id, draining, precondition }: NodeChange): Promise<NodeView> {
  return inTransaction(db, async (db) => {
    precondition(versionOfNode(await findNode(db, id)))
    const [drained] = await drainNodes(db, id, draining)
    if (!drained) throw new Fault('invalid_transition', `${id} is lost, so it cannot be drained or undrained.`)
    return findNode(db, id)
  })
}

/** Drains or undrains nodes by id or name. They are notified, or see it at their next heartbeat. */
export async function drainNodes(db: Db, node: string, draining: boolean): Promise<NodeView[]> {
  const nodes = (await listAllNodes(db)).filter(
    ({ id, name, state }) => (id === node || name === node) && state !== 'LOST',
  )
  await db.node.updateMany({ where: { id: { in: nodes.map(({ id }) => id) } }, data: { draining } })
  return nodes
}

/** Deletes nodes that have been lost for a day. */
export async function deleteLostNodes(db: Db): Promise<number> {
  const { count } = await db.node.deleteMany({ where: { heartbeatAt: { lt: new Date(Date.now() - dayMs) } } })
  return count
}
