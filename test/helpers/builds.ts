// Deployments of several accounts without repositories, for tests of the build queue.
import { takeBuild } from '../../src/jobs/statements.ts'
import type { Db } from '../../src/platform/database/database.ts'
import { createDeployment } from '../../src/services/deployments/deployments.ts'
import type { Actor } from '../../src/services/identity/actor.ts'
import type { TestApi } from './api.ts'

export type Tenant = {
  accountId: string
  token: string
  actor: Actor
  projectId: string
  /** Queues a build and returns the ID of its deployment. */
  ask(production?: boolean): Promise<string>
}

let made = 0

export async function newTenant(api: TestApi): Promise<Tenant> {
  const { accountId, token } = await api.newAccount()
  const name = `tenant-${++made}`
  const body = { name, repo: `tenants/${name}` }
  const { body: project } = await api.call('POST', '/projects', { token, body })
  const actor: Actor = { accountId, tokenId: 'system', scopes: [], projectIds: null }
  const plan = { project, ref: 'main', commit: 'a'.repeat(40), region: 'local-1', source: 'api' } as const
  return {
    accountId,
    token,
    actor,
    projectId: project.id,
    async ask(production = false) {
      return (await createDeployment(api.db, api.deps.urls, actor, { ...plan, production })).id
    },
  }
}

/** Takes the next build like a worker with many slots; returns the ID of its deployment, or null. */
export async function takeNext(db: Db, { worker = 'worker', slots = 1000 } = {}): Promise<string | null> {
  const [job] = await takeBuild(db, { worker, slots })
  return job ? (job.payload as { deploymentId: string }).deploymentId : null
}

/** Takes builds until none is left. */
export async function takeAll(db: Db, options: { worker?: string; slots?: number } = {}): Promise<string[]> {
  const taken: string[] = []
  for (;;) {
    const id = await takeNext(db, options)
    if (id === null) return taken
    taken.push(id)
  }
}

/** Leaves the state of a worker that has finished a build. */
export async function endBuild(db: Db, deploymentId: string): Promise<void> {
  await db.job.deleteMany({ where: { kind: 'build', key: deploymentId } })
}

/** Leaves the state of a worker that died: its lease expires. */
export async function loseBuild(db: Db, deploymentId: string): Promise<void> {
  await db.job.updateMany({ where: { key: deploymentId }, data: { lockedUntil: new Date(Date.now() - 1000) } })
}

export async function limit(db: Db, accountId: string, limits: Record<string, number>): Promise<void> {
  await db.account.update({ where: { id: accountId }, data: { limits } })
}
