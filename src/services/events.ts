// The append-only log: every change writes one row, in the transaction of the change.
import type { Actor } from '../actor.ts'
import { type Db, rows, type Sql, sql } from '../db.ts'
import { newId } from '../ids.ts'

export const eventTypes = [
  'deployment.created',
  'deployment.ready',
  'deployment.error',
  'deployment.canceled',
  'deployment.promoted',
  'deployment.deleted',
  'project.created',
  'project.updated',
  'project.deleted',
  'domain.created',
  'domain.verified',
  'domain.unverified',
  'domain.deleted',
  'domain.ssl.active',
  'domain.ssl.renewed',
  'domain.ssl.error',
  'domain.ssl.expired',
  'dns.record.created',
  'dns.record.updated',
  'dns.record.deleted',
  'ticket.created',
  'ticket.replied',
  'ticket.status_changed',
  'token.created',
  'token.revoked',
  'token.rotated',
  'webhook.disabled',
  'webhook.ping',
  'account.created',
  'account.suspended',
  'account.resumed',
] as const

export type EventType = (typeof eventTypes)[number]

export type NewEvent = {
  accountId: string
  projectId: string | null
  type: EventType
  /** A token's id, or `system`. */
  actor: string
  /** Key of the resource: its id, or the name of a domain. */
  subject: string
  /** The resource as the API shows it, after the change. */
  data: object
}

/** The event of an actor's own change. */
export function eventOf(
  actor: Actor,
  type: EventType,
  subject: string,
  projectId: string | null,
  data: object,
): NewEvent {
  return { accountId: actor.accountId, projectId, type, actor: actor.tokenId, subject, data }
}

/**
 * The insert of an event, as one more part of the statement that makes the change: written if `source`, the part
 * that makes it, has a row. One round trip and one commit for both.
 */
export function eventSql(event: NewEvent, source: Sql): Sql {
  return sql`INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
    SELECT ${newId('evt')}, ${event.accountId}, ${event.projectId}, ${event.type}, ${event.actor}, ${event.subject},
      ${JSON.stringify(event.data)}::jsonb, now() FROM ${source}`
}

/** Writes events beside changes that take more than one statement; `db` is the handle of their transaction. */
export async function append(db: Db, events: NewEvent[]): Promise<void> {
  if (events.length === 0) return
  const batch = events.map((event) => ({ id: newId('evt'), ...event }))
  await rows(
    db,
    sql`INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
        SELECT id, "accountId", "projectId", type, actor, subject, data, now()
        FROM jsonb_to_recordset(${JSON.stringify(batch)}::jsonb) AS e(id text, "accountId" text, "projectId" text,
          type text, actor text, subject text, data jsonb) RETURNING id`,
  )
}
