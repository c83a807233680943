// What a token narrowed to projects sees of the usage of its account.
import type { Db } from '../../platform/database.ts'
import { inProjectsOf, projectsOf } from '../projects/projects.ts'
import type { Actor } from '../tokens/actor.ts'

/** The share of the actor's projects: deployments from counters. What belongs to no project is null. */
export async function readShare(db: Db, actor: Actor) {
  const [projects, used, domains] = await Promise.all([
    db.project.count({ where: projectsOf(actor) }),
    db.projectUsage.aggregate({
      where: { projectId: { in: [...(actor.projectIds ?? [])] } },
      _sum: { deployments: true, storedBytes: true },
    }),
    db.domain.aggregate({ where: inProjectsOf(actor), _count: true, _sum: { recordCount: true } }),
  ])
  return {
    projects,
    deployments: Number(used._sum.deployments ?? 0),
    domains: domains._count,
    records: domains._sum.recordCount ?? 0,
    openTickets: null,
    tokens: null,
    webhooks: null,
    buildsAtOnce: null,
    buildsQueued: null,
    buildMinutesPerMonth: null,
    storedBytes: Number(used._sum.storedBytes ?? 0),
  }
}
