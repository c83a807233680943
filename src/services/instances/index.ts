// Instances of server projects: which should run, which runner has each, and their states.

import { type Database, type Db, inTransaction } from '../../platform/database/database.ts'
import type { ValuesOf } from '../../platform/database/statement.ts'
import {
  deleteLostRunners,
  firstLeavingSlot,
  lockPlacement,
  placeInstance,
  readHeldInstances,
  readServedInstances,
  renewRunner,
  type servedInstance,
} from './statements.ts'

export { type Duty, firstLeavingSlot, leaveNode, spreadInstance, wantOnDemand, wantProduction } from './statements.ts'

export type ServedInstance = ValuesOf<typeof servedInstance>
export type HeldInstance = Awaited<ReturnType<typeof readHeldInstances>>[number]
export type InstanceState = ServedInstance['state']

/** A runner process, and the address at which edges reach it. */
export type RunnerNode = { id: string; address: string }

/** Other nodes can take over the instances of a runner that has not renewed its lease for this long. */
export const runnerLeaseMs = 10_000
// Placements per transaction: a burst, such as all instances of a lost node, must not hold the lock throughout.
const placementBatch = 50

/** Frees the instances of this node's previous process. `alone`: there are no other runners, so frees all instances. */
export async function beginRunner(db: Database, { id: node }: RunnerNode, alone: boolean): Promise<void> {
  const where = alone ? { node: { not: null } } : { node }
  await inTransaction(db, async (db) => {
    await db.instance.deleteMany({ where: { ...where, slot: { gte: firstLeavingSlot } } })
    await db.instance.updateMany({ where, data: { node: null, address: null, state: 'wanted' } })
    if (alone) await db.runner.deleteMany()
  })
}

export async function renew(db: Db, { id: node, address }: RunnerNode, draining: boolean, leaseMs: number) {
  const [found] = await renewRunner(db, { node, address, draining, leaseMs })
  return found!
}

/** Assigns instances to nodes; with `takeOver`, also those of lost nodes. */
export async function placeInstances(db: Database, takeOver: boolean): Promise<void> {
  for (let placed = placementBatch; placed === placementBatch; ) {
    placed = await inTransaction(db, async (db) => {
      await lockPlacement(db, {})
      let count = 0
      while (count < placementBatch && (await placeInstance(db, { takeOver })).length > 0) count++
      if (takeOver && count < placementBatch) await deleteLostRunners(db, {})
      return count
    })
  }
}

export function readHeld(db: Db, node: string): Promise<HeldInstance[]> {
  return readHeldInstances(db, { node })
}

/** Reads the instances that have a node, of all or some deployments. */
export function readServed(db: Db, deploymentIds: string[] | null): Promise<ServedInstance[]> {
  return readServedInstances(db, { deploymentIds })
}

type InstanceTerm = Pick<HeldInstance, 'deploymentId' | 'term'>

/** Sets the state if the term is current; otherwise another node has the instance. */
export async function setInstanceState(
  db: Db,
  { deploymentId, term }: InstanceTerm,
  state: InstanceState,
  reason: string | null,
): Promise<void> {
  await db.instance.updateMany({ where: { deploymentId, term: BigInt(term) }, data: { state, reason } })
}

export async function removeInstance(db: Db, { deploymentId, term }: InstanceTerm): Promise<void> {
  await db.instance.deleteMany({ where: { deploymentId, term: BigInt(term) } })
}

/** Deletes a runner that shuts down, so nobody waits for its lease to expire. */
export async function endRunner(db: Database, { id: node }: RunnerNode): Promise<void> {
  await inTransaction(db, async (db) => {
    await db.instance.deleteMany({ where: { node } })
    await db.runner.deleteMany({ where: { node } })
  })
}

/** Requests an instance of a deployment that is not READY yet. Replaces the one of an earlier attempt and its files. */
export async function wantProof(db: Database, deploymentId: string): Promise<void> {
  await inTransaction(db, async (db) => {
    await db.instance.deleteMany({ where: { deploymentId } })
    await db.instance.createMany({ data: [{ deploymentId, slot: 0 }] })
  })
}

/** Returns null if it was deleted; `placed` says whether a runner has it. */
export async function findProof(db: Db, deploymentId: string) {
  const found = await db.instance.findUnique({
    where: { deploymentId_slot: { deploymentId, slot: 0 } },
    select: { node: true, state: true, reason: true },
  })
  return found && { placed: found.node !== null, state: found.state, reason: found.reason }
}

export async function endProof(db: Db, deploymentId: string): Promise<void> {
  await db.instance.deleteMany({ where: { deploymentId } })
}
