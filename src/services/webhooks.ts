// Webhooks: where events are sent. The signing secret is sealed at rest and shown only by the answer that made it.
import { randomBytes } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault, type FieldError, invalidField } from '../errors.ts'
import { newId } from '../ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import { eventTypes } from '../schemas/events.ts'
import type {
  ChangeWebhook,
  CreateWebhook,
  Webhook as WebhookSchema,
  WebhookWithSecret as WithSecretSchema,
} from '../schemas/webhooks.ts'
import type { Vault } from '../secrets.ts'
import { append, type EventType } from './events.ts'
import { type TargetRules, targetRefusal } from './webhook-targets.ts'

export type WebhookView = Static<typeof WebhookSchema>
export type WebhookWithSecret = Static<typeof WithSecretSchema>

export type WebhookRow = {
  id: string
  accountId: string
  url: string
  events: string[]
  active: boolean
  createdAt: Date
  updatedAt: Date
}

const maxWebhooks = 50
const defaultOverlapSeconds = 86_400

const columns = sql`w.id, w.account_id AS "accountId", w.url, w.events, w.active, w.created_at AS "createdAt",
  w.updated_at AS "updatedAt"`

export function viewWebhook(row: WebhookRow): WebhookView {
  return {
    id: row.id,
    url: row.url,
    events: row.events,
    active: row.active,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

/** Whether a webhook of these patterns gets an event. A ping goes to the webhook it is meant for and to no other. */
export function subscribes(patterns: readonly string[], type: EventType): boolean {
  if (type === 'webhook.ping') return false
  return patterns.some(
    (pattern) =>
      pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))),
  )
}

/** Refuses every bad field of a webhook at once. A pattern that no event can match is a typo. */
function check(rules: TargetRules, input: Static<typeof ChangeWebhook>): void {
  const errors: FieldError[] = []
  const refusal = input.url === undefined ? null : targetRefusal(input.url, rules)
  if (refusal) errors.push({ in: 'body', pointer: '#/url', code: 'bad_url', detail: refusal })
  for (const [index, pattern] of (input.events ?? []).entries()) {
    if (eventTypes.some((type) => subscribes([pattern], type))) continue
    const detail = `${pattern} matches no event; known are *, prefixes such as deployment.* and ${eventTypes.join(', ')}`
    errors.push({ in: 'body', pointer: `#/events/${index}`, code: 'unknown_event', detail })
  }
  if (errors.length === 0) return
  const names = errors.map((error) => error.pointer.slice(2).replaceAll('/', '.'))
  throw new Fault('validation_failed', `Not valid: ${names.join(', ')}.`, { errors })
}

// The form that the libraries of Standard Webhooks take.
function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

// A change leaves events of the account their way, which lock the webhook against deletion; a deletion waits for them.
const locks = { none: sql``, change: sql`FOR NO KEY UPDATE`, delete: sql`FOR UPDATE` }

export async function findWebhook(
  db: Db,
  actor: Actor,
  id: string,
  lock: keyof typeof locks = 'none',
): Promise<WebhookRow> {
  const [row] = await rows<WebhookRow>(
    db,
    sql`SELECT ${columns} FROM webhook w WHERE w.id = ${id} AND w.account_id = ${actor.accountId} ${locks[lock]}`,
  )
  if (!row) throw new Fault('not_found', `There is no webhook ${id}.`)
  return row
}

export async function listWebhooks(db: Db, actor: Actor, page: PageRequest): Promise<PageOf<WebhookView>> {
  const descending = page.order === 'desc'
  const after = !page.after ? sql`` : descending ? sql`AND w.id < ${page.after[0]}` : sql`AND w.id > ${page.after[0]}`
  const found = await rows<WebhookRow>(
    db,
    sql`SELECT ${columns} FROM webhook w WHERE w.account_id = ${actor.accountId} ${after}
        ORDER BY w.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(found, page, viewWebhook, (row) => [row.id])
}

export async function createWebhook(
  db: Db,
  rules: TargetRules,
  vault: Vault,
  actor: Actor,
  input: Static<typeof CreateWebhook>,
): Promise<WebhookWithSecret> {
  check(rules, input)
  const now = new Date()
  const secret = newSecret()
  const row: WebhookRow = {
    id: newId('whk'),
    accountId: actor.accountId,
    url: input.url,
    events: input.events,
    active: input.active ?? true,
    createdAt: now,
    updatedAt: now,
  }
  await inTransaction(db, async (db) => {
    // Those who count take turns, or two of them would both be the fiftieth.
    await rows(db, sql`SELECT 1 FROM account WHERE id = ${actor.accountId} FOR NO KEY UPDATE`)
    const count = await db.webhook.count({ where: { accountId: actor.accountId } })
    if (count >= maxWebhooks) throw invalidField('#', 'too_many', `An account has ${maxWebhooks} webhooks at most.`)
    await db.webhook.create({ data: { ...row, secret: Uint8Array.from(vault.seal(secret)) } })
  })
  return { ...viewWebhook(row), secret }
}

export async function changeWebhook(
  db: Db,
  rules: TargetRules,
  actor: Actor,
  id: string,
  change: Static<typeof ChangeWebhook>,
  precondition: (view: WebhookView) => void,
): Promise<WebhookView> {
  return inTransaction(db, async (db) => {
    const before = await findWebhook(db, actor, id, 'change')
    precondition(viewWebhook(before))
    check(rules, change)
    const data = { ...change, updatedAt: new Date() }
    await db.webhook.update({ where: { id: before.id }, data })
    const fresh = (change.active && !before.active) || (change.url !== undefined && change.url !== before.url)
    if (fresh) await beginAnew(db, before.id)
    return viewWebhook({ ...before, ...data })
  })
}

/** What the receiver did before it was turned on again or moved is not held against it; what waits is sent at once. */
async function beginAnew(db: Db, id: string): Promise<void> {
  await rows(
    db,
    sql`UPDATE webhook_lane SET failures = 0, failing_since = NULL, paused_until = NULL,
          wake_at = CASE WHEN leased_by IS NULL THEN now() ELSE wake_at END
        WHERE webhook_id = ${id} RETURNING webhook_id`,
  )
}

/** Turns a webhook off because of its receiver, and tells the account; its deliveries wait for it to be turned on. */
export async function disableWebhook(db: Db, id: string): Promise<boolean> {
  return inTransaction(db, async (db) => {
    const [row] = await rows<WebhookRow>(
      db,
      sql`UPDATE webhook w SET active = false, updated_at = now() WHERE w.id = ${id} AND w.active RETURNING ${columns}`,
    )
    if (!row) return false
    const event = { projectId: null, type: 'webhook.disabled' as const, actor: 'system', subject: id }
    await append(db, [{ ...event, accountId: row.accountId, data: viewWebhook(row) }])
    return true
  })
}

/** Takes its deliveries along, also those that were still to be made. */
export async function deleteWebhook(
  db: Db,
  actor: Actor,
  id: string,
  precondition: (view: WebhookView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findWebhook(db, actor, id, 'delete')
    precondition(viewWebhook(row))
    await db.webhook.delete({ where: { id: row.id } })
  })
}

/** A new secret; until the overlap ends, deliveries are signed with the old one too. */
export async function rotateSecret(
  db: Db,
  vault: Vault,
  actor: Actor,
  id: string,
  overlapSeconds = defaultOverlapSeconds,
): Promise<WebhookWithSecret> {
  const secret = newSecret()
  // One statement, so the secret that becomes the old one is the one that it replaces.
  const [row] = await rows<WebhookRow>(
    db,
    sql`UPDATE webhook w SET secret = ${vault.seal(secret)}, updated_at = ${new Date()}::timestamptz,
          old_secret = CASE WHEN ${overlapSeconds}::int > 0 THEN w.secret END,
          old_secret_until = CASE WHEN ${overlapSeconds}::int > 0 THEN now() + ${overlapSeconds}::int * interval '1 s' END
        WHERE w.id = ${id} AND w.account_id = ${actor.accountId} RETURNING ${columns}`,
  )
  if (!row) throw new Fault('not_found', `There is no webhook ${id}.`)
  return { ...viewWebhook(row), secret }
}
