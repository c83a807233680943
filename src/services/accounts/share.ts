// What a token narrowed to projects sees of the usage of its account.
import type { Db } from '../../platform/database.ts'
import { inProjectsOf, projectsOf } from '../projects/projects.ts'
import type { Actor } from '../tokens/actor.ts'

/** The share of the actor's projects, counted: there are no counters by project. What belongs to no project is null. */
export async function readShare(db: Db, actor: Actor) {
  const where = inProjectsOf(actor)
  const [projects, deployments, domains] = await Promise.all([
    db.project.count({ where: projectsOf(actor) }),
    db.deployment.aggregate({ where, _count: true, _sum: { storedBytes: true } }),
    db.domain.aggregate({ where, _count: true, _sum: { recordCount: true } }),
  ])
  return {
    projects,
    deployments: deployments._count,
    domains: domains._count,
    records: domains._sum.recordCount ?? 0,
    openTickets: null,
    tokens: null,
    webhooks: null,
    buildsAtOnce: null,
    buildsQueued: null,
    buildMinutesPerMonth: null,
    storedBytes: Number(deployments._sum.storedBytes ?? 0),
  }
}
