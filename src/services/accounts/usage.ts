// What an account holds, counted for its owner.
import type { Db } from '../../platform/database.ts'
import { inProjectsOf, projectsOf } from '../projects/projects.ts'
import type { Actor } from '../tokens/actor.ts'

export async function readAccount(db: Db, actor: Actor) {
  const [account, usage] = await Promise.all([
    db.account.findUniqueOrThrow({ where: { id: actor.accountId } }),
    actor.projectIds ? countShare(db, actor) : countAll(db, actor.accountId),
  ])
  const { id, name, createdAt } = account
  return { id, name, createdAt: createdAt.toISOString(), usage }
}

async function countAll(db: Db, accountId: string) {
  const where = { accountId }
  const [projects, deployments, domains, records, openTickets, tokens, webhooks] = await Promise.all([
    db.project.count({ where }),
    db.deployment.count({ where }),
    db.domain.count({ where }),
    db.dnsRecord.count({ where: { domain: where } }),
    db.ticket.count({ where: { accountId, status: { notIn: ['RESOLVED', 'CLOSED'] } } }),
    db.token.count({ where: { accountId, revokedAt: null } }),
    db.webhook.count({ where }),
  ])
  return { projects, deployments, domains, records, openTickets, tokens, webhooks }
}

/** What a token narrowed to projects sees: their share. What belongs to the account as a whole is null. */
export async function countShare(db: Db, actor: Actor) {
  const where = inProjectsOf(actor)
  const [projects, deployments, domains, records] = await Promise.all([
    db.project.count({ where: projectsOf(actor) }),
    db.deployment.count({ where }),
    db.domain.count({ where }),
    db.dnsRecord.count({ where: { domain: where } }),
  ])
  return { projects, deployments, domains, records, openTickets: null, tokens: null, webhooks: null }
}
