// Webhooks: where events are sent. The signing secret is sealed at rest and shown only by the answer that made it.
import { randomBytes } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Webhook } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault, type FieldError } from '../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../platform/fields.ts'
import { newId } from '../../platform/ids.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { eventTypes } from '../../schemas/events.ts'
import {
  type ChangeWebhook,
  type CreateWebhook,
  Webhook as WebhookSchema,
  type WebhookWithSecret as WithSecretSchema,
} from '../../schemas/webhooks.ts'
import { append, type EventType, matchesType } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { resetSending } from './sending.ts'
import { lockWebhook } from './statements.ts'
import { type TargetRules, targetRefusal } from './targets.ts'

export type WebhookView = Static<typeof WebhookSchema>
export type WebhookWithSecret = Static<typeof WithSecretSchema>

const defaultOverlapSeconds = 86_400

const viewOfWebhook = viewOf(WebhookSchema)

export const viewWebhook = (row: Webhook): WebhookView => viewOfWebhook(row)

/** Whether a webhook of these patterns gets an event, by the same rule as the trigger `event_deliver`. */
export function subscribes(patterns: readonly string[], type: EventType): boolean {
  // A ping goes to the webhook it is meant for and to no other.
  if (type === 'webhook.ping') return false
  return patterns.some((pattern) => matchesType(pattern, type))
}

/** Refuses every bad field of a webhook at once. A pattern that no event can match is a typo. */
export function checkWebhook(rules: TargetRules, input: Sound<Static<typeof ChangeWebhook>>): void {
  const errors: FieldError[] = []
  const refusal = input.url === undefined ? null : targetRefusal(input.url, rules)
  if (refusal) errors.push(badField('#/url', 'bad_url', refusal))
  for (const [index, pattern] of (input.events ?? []).entries()) {
    if (pattern === undefined || eventTypes.some((type) => subscribes([pattern], type))) continue
    const detail = `${pattern} matches no event; use *, a prefix such as deployment.*, or one of ${eventTypes.join(', ')}`
    errors.push(badField(`#/events/${index}`, 'unknown_event', detail))
  }
  refuseFields(errors)
}

// The form that the libraries of Standard Webhooks take.
function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

const seal = (vault: Vault, id: string, secret: string) => Uint8Array.from(vault.seal(secret, placeOf.webhook(id)))

export async function findWebhook(db: Db, { accountId }: Actor, id: string): Promise<Webhook> {
  const row = await db.webhook.findFirst({ where: { id, accountId } })
  if (!row) throw new Fault('not_found', `There is no webhook ${id}.`)
  return row
}

/** The webhook, locked until the transaction ends. */
async function findLocked(db: Db, actor: Actor, id: string, purpose: 'change' | 'delete'): Promise<Webhook> {
  await lockWebhook[purpose](db, { id, accountId: actor.accountId })
  return findWebhook(db, actor, id)
}

export async function listWebhooks(db: Db, { accountId }: Actor, page: PageRequest): Promise<PageOf<WebhookView>> {
  const { where, ...rest } = byId(page, 'whk')
  const found = await db.webhook.findMany({ where: { ...where, accountId }, ...rest })
  return pageOf(found, page, viewWebhook, (row) => [row.id])
}

export async function createWebhook(
  db: Db,
  { accountId }: Actor,
  input: Static<typeof CreateWebhook>,
  { rules, vault }: { rules: TargetRules; vault: Vault },
): Promise<WebhookWithSecret> {
  checkWebhook(rules, input)
  const now = new Date()
  const secret = newSecret()
  const id = newId('whk')
  const made = {
    id,
    accountId,
    url: input.url,
    events: input.events,
    active: input.active ?? true,
    secret: seal(vault, id, secret),
    createdAt: now,
    updatedAt: now,
  }
  return { ...viewWebhook(await db.webhook.create({ data: made })), secret }
}

type WebhookChange = {
  input: Static<typeof ChangeWebhook>
  rules: TargetRules
  precondition: (view: WebhookView) => void
}

/** A webhook that is turned on again or gets another URL starts without failures, and what waits is sent at once. */
export async function changeWebhook(
  db: Db,
  actor: Actor,
  id: string,
  { input, rules, precondition }: WebhookChange,
): Promise<WebhookView> {
  return inTransaction(db, async (db) => {
    const before = await findLocked(db, actor, id, 'change')
    precondition(viewWebhook(before))
    checkWebhook(rules, input)
    const after = await db.webhook.update({ where: { id }, data: { ...input, updatedAt: new Date() } })
    if ((after.active && !before.active) || after.url !== before.url) await resetSending(db, id)
    return viewWebhook(after)
  })
}

/** Turns a webhook off whose receiver is gone, with an event; its deliveries wait until it is turned on again. */
export async function disableWebhook(db: Db, id: string): Promise<boolean> {
  return inTransaction(db, async (db) => {
    const [row] = await db.webhook.updateManyAndReturn({
      where: { id, active: true },
      data: { active: false, updatedAt: new Date() },
    })
    if (!row) return false
    const event = { projectId: null, type: 'webhook.disabled' as const, actor: 'system', subject: id }
    await append(db, [{ ...event, accountId: row.accountId, data: viewWebhook(row) }])
    return true
  })
}

/** Deletes the webhook and its deliveries, also those that were not sent yet. */
export async function deleteWebhook(
  db: Db,
  actor: Actor,
  id: string,
  precondition: (view: WebhookView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const row = await findLocked(db, actor, id, 'delete')
    precondition(viewWebhook(row))
    await db.webhook.delete({ where: { id: row.id } })
  })
}

/** A new secret; until the overlap ends, deliveries are signed with the old one too. */
export async function rotateSecret(
  db: Db,
  actor: Actor,
  id: string,
  { vault, overlapSeconds = defaultOverlapSeconds }: { vault: Vault; overlapSeconds?: number | undefined },
): Promise<WebhookWithSecret> {
  const secret = newSecret()
  return inTransaction(db, async (db) => {
    const before = await findLocked(db, actor, id, 'change')
    const now = new Date()
    const old =
      overlapSeconds > 0
        ? { oldSecret: before.secret, oldSecretUntil: new Date(now.getTime() + overlapSeconds * 1000) }
        : { oldSecret: null, oldSecretUntil: null }
    const data = { ...old, secret: seal(vault, id, secret), updatedAt: now }
    return { ...viewWebhook(await db.webhook.update({ where: { id }, data })), secret }
  })
}
