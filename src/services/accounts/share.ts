// The usage of an account that a token limited to projects can see.
import type { Db } from '../../platform/database/database.ts'
import { type Actor, inProjectsOf, projectsOf } from '../identity/index.ts'

/** The usage of the actor's projects. Usage that belongs to no project is null. */
export async function readShare(db: Db, actor: Actor) {
  const [projects, servers, used, domains, dnsKeys] = await Promise.all([
    db.project.count({ where: projectsOf(actor) }),
    db.project.aggregate({
      where: { AND: [projectsOf(actor), { OR: [{ framework: 'node' }, { server: true }] }] },
      _sum: { instances: true },
    }),
    db.projectUsage.aggregate({
      where: { projectId: { in: [...(actor.projectIds ?? [])] } },
      _sum: { deployments: true, storedBytes: true },
    }),
    db.domain.aggregate({ where: inProjectsOf(actor), _count: true, _sum: { recordCount: true, recordBytes: true } }),
    db.dnsKey.count({ where: { domain: inProjectsOf(actor) } }),
  ])
  return {
    projects,
    serverInstances: servers._sum.instances ?? 0,
    deployments: Number(used._sum.deployments ?? 0),
    domains: domains._count,
    claimsPerMonth: null,
    records: domains._sum.recordCount ?? 0,
    recordBytes: Number(domains._sum.recordBytes ?? 0),
    dnsKeys,
    openTickets: null,
    messagesPerMonth: null,
    tokens: null,
    members: null,
    webhooks: null,
    buildsAtOnce: null,
    buildsQueued: null,
    buildMinutesPerMonth: null,
    storedBytes: Number(used._sum.storedBytes ?? 0),
  }
}
