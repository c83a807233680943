// Instances of server projects: which are wanted, which runner has which, and in what state they are.

import { type Database, type Db, inTransaction } from '../../platform/database/database.ts'
import type { ValuesOf } from '../../platform/database/statement.ts'
import {
  firstLeavingSlot,
  forgetLost,
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

/** A process that runs servers, and where edges reach it. */
export type RunnerNode = { id: string; address: string }

/** Another node may have the instances of a runner that has not renewed its lease for this long. */
export const runnerLeaseMs = 10_000
// Of a burst, such as all instances of a lost node; the lock is not held for all of them at once.
const placedAtOnce = 50

/** Begins anew: what an earlier process of this node ran is placed again. `alone`: there is no other process at all. */
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

/** Gives instances to nodes. With `takeOver`, also those of nodes that are gone. */
export async function placeInstances(db: Database, takeOver: boolean): Promise<void> {
  for (let placed = placedAtOnce; placed === placedAtOnce; ) {
    placed = await inTransaction(db, async (db) => {
      await lockPlacement(db, {})
      let count = 0
      while (count < placedAtOnce && (await placeInstance(db, { takeOver })).length > 0) count++
      if (takeOver && count < placedAtOnce) await forgetLost(db, {})
      return count
    })
  }
}

export function readHeld(db: Db, node: string): Promise<HeldInstance[]> {
  return readHeldInstances(db, { node })
}

/** All instances that have a node, or those of these deployments. */
export function readServed(db: Db, deploymentIds: string[] | null): Promise<ServedInstance[]> {
  return readServedInstances(db, { deploymentIds })
}

type Held = Pick<HeldInstance, 'deploymentId' | 'term'>

/** Only while it is still in this term: otherwise another node has it. */
export async function setInstanceState(
  db: Db,
  { deploymentId, term }: Held,
  state: InstanceState,
  reason: string | null,
): Promise<void> {
  await db.instance.updateMany({ where: { deploymentId, term: BigInt(term) }, data: { state, reason } })
}

export async function removeInstance(db: Db, { deploymentId, term }: Held): Promise<void> {
  await db.instance.deleteMany({ where: { deploymentId, term: BigInt(term) } })
}

/** The runner stops in order: nobody has to wait until its lease ends. */
export async function endRunner(db: Database, { id: node }: RunnerNode): Promise<void> {
  await inTransaction(db, async (db) => {
    await db.instance.deleteMany({ where: { node } })
    await db.runner.deleteMany({ where: { node } })
  })
}

/** Asks for an instance of a deployment that is not READY yet. One of an earlier attempt has the files of that attempt. */
export async function wantProof(db: Database, deploymentId: string): Promise<void> {
  await inTransaction(db, async (db) => {
    await db.instance.deleteMany({ where: { deploymentId } })
    await db.instance.createMany({ data: [{ deploymentId, slot: 0 }] })
  })
}

/** Null if it is gone; `placed` tells whether a runner has it. */
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
