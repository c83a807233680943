// How many servers the projects of an account may run: each takes the memory of a machine that all accounts share.
import type { Project } from '../../generated/client.ts'
import type { Db } from '../../platform/database.ts'
import { limitOf, quotaFault } from '../accounts/quotas.ts'
import { lockInstances } from './statements.ts'

/** Refuses so many instances of a project if those of the account would be too many. */
export async function checkInstances(db: Db, { id, accountId }: Project, instances: number): Promise<void> {
  if (instances <= 1) return
  await lockInstances(db, { accountId })
  const others = { accountId, id: { not: id }, instances: { gt: 1 } }
  const { _count: projects, _sum: sum } = await db.project.aggregate({
    where: others,
    _count: true,
    _sum: { instances: true },
  })
  const used = (sum.instances ?? 0) - projects
  const max = await limitOf(db, accountId, 'extraInstances')
  if (used + instances - 1 > max) throw quotaFault({ limit: 'extraInstances', used, max })
}
