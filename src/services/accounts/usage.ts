// What an account holds, counted for its owner.
import type { Db } from '../../platform/database.ts'
import type { Actor } from '../tokens/actor.ts'

export async function readAccount(db: Db, { accountId }: Actor) {
  const where = { accountId }
  const [account, projects, deployments, domains, records, openTickets, tokens, webhooks] = await Promise.all([
    db.account.findUniqueOrThrow({ where: { id: accountId } }),
    db.project.count({ where }),
    db.deployment.count({ where }),
    db.domain.count({ where }),
    db.dnsRecord.count({ where: { domain: where } }),
    db.ticket.count({ where: { accountId, status: { notIn: ['RESOLVED', 'CLOSED'] } } }),
    db.token.count({ where: { accountId, revokedAt: null } }),
    db.webhook.count({ where }),
  ])
  const { id, name, createdAt } = account
  const usage = { projects, deployments, domains, records, openTickets, tokens, webhooks }
  return { id, name, createdAt: createdAt.toISOString(), usage }
}
