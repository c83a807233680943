// What an account holds, counted for its owner.
import type { Actor } from '../actor.ts'
import { type Db, rows, sql } from '../db.ts'

type Counted = {
  id: string
  name: string
  createdAt: Date
  projects: number
  deployments: number
  domains: number
  records: number
  openTickets: number
  tokens: number
  webhooks: number
}

export async function readAccount(db: Db, actor: Actor) {
  const [counted] = await rows<Counted>(
    db,
    sql`SELECT a.id, a.name, a.created_at AS "createdAt",
          (SELECT count(*)::int FROM project WHERE account_id = a.id) AS projects,
          (SELECT count(*)::int FROM deployment WHERE account_id = a.id) AS deployments,
          (SELECT count(*)::int FROM domain WHERE account_id = a.id) AS domains,
          (SELECT count(*)::int FROM dns_record r JOIN domain d ON d.id = r.domain_id WHERE d.account_id = a.id) AS records,
          (SELECT count(*)::int FROM ticket WHERE account_id = a.id AND status NOT IN ('RESOLVED', 'CLOSED')) AS "openTickets",
          (SELECT count(*)::int FROM token WHERE account_id = a.id AND revoked_at IS NULL) AS tokens,
          (SELECT count(*)::int FROM webhook WHERE account_id = a.id) AS webhooks
        FROM account a WHERE a.id = ${actor.accountId}`,
  )
  const { id, name, createdAt, ...usage } = counted!
  return { id, name, createdAt: createdAt.toISOString(), usage }
}
