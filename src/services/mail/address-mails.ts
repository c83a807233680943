// Emails to unproved addresses: invitations and email verification. Their codes are stored in no row and no event.
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { hashToken, type Vault } from '../../platform/secrets/secrets.ts'
import { lockAccount } from '../identity/index.ts'
import { emailVerificationCode } from '../people/index.ts'
import type { MailEvent } from './occasions.ts'
import { queueSending } from './outbox.ts'

const hourMs = 60 * 60_000
/** Keeps customers from spamming strangers: further emails are dropped. An inviter can still pass on the link. */
const maxPerAccount = { count: 20, withinMs: hourMs }
const maxPerAddress = { count: 3, withinMs: 24 * hourMs }

export const addressKinds = ['invitation', 'address'] as const
export type AddressKind = (typeof addressKinds)[number]

/** Queues one email to the address in the event, however often it is called. */
export async function queueAddressMail(db: Db, event: MailEvent, kind: AddressKind): Promise<void> {
  const { id: about, accountId } = event
  // The recipient is the address, because an invitation or a person may be replaced by a new one.
  const { email: recipient } = event.data as { email: string }
  await inTransaction(db, async (db) => {
    await lockAccount(db, { id: accountId })
    if (await db.mail.findUnique({ where: { recipient_about: { recipient, about } } })) return
    const row = { recipient, about, eventId: about, accountId, kind, dueAt: new Date() }
    const reason = await refusalOf(db, accountId, recipient)
    if (reason !== null) {
      await db.mail.create({ data: { ...row, state: 'DROPPED', reason, endedAt: row.dueAt } })
      return
    }
    await db.mail.create({ data: { ...row, state: 'WAITING' } })
    await queueSending(db, { recipient, about }, row.dueAt)
  })
}

async function refusalOf(db: Db, accountId: string, recipient: string): Promise<string | null> {
  const countRecent = (filter: object, { withinMs }: { withinMs: number }) => {
    const dueAt = { gt: new Date(Date.now() - withinMs) }
    return db.mail.count({ where: { ...filter, kind: { in: [...addressKinds] }, state: { not: 'DROPPED' }, dueAt } })
  }
  if ((await countRecent({ accountId }, maxPerAccount)) >= maxPerAccount.count) {
    return 'the account sent too many within an hour'
  }
  const isTooMany = (await countRecent({ recipient }, maxPerAddress)) >= maxPerAddress.count
  return isTooMany ? 'the address got too many within a day' : null
}

export type DueInvitation = { code: string; role: string; expiresAt: Date }

/**
 * Finds the invitation, if it is still pending, with a separate code for the email. The code is derived from the id and
 * the platform's key, so a retry has the same code and only its hash is stored.
 */
export async function findDueInvitation(db: Db, vault: Vault, { data }: MailEvent): Promise<DueInvitation | null> {
  const { id, email } = data as { id: string; email: string }
  const code = vault.sign(id, 'invitation').toString('base64url')
  const [row] = await db.invitation.updateManyAndReturn({
    where: { id, email, acceptedAt: null, expiresAt: { gt: new Date() } },
    data: { mailHash: Uint8Array.from(hashToken(code)) },
  })
  return row ? { code, role: row.role, expiresAt: row.expiresAt } : null
}

/** The code that verifies the email; null if it is verified already or has changed. */
export async function findDueEmailCode(db: Db, vault: Vault, { subject: id, data }: MailEvent): Promise<string | null> {
  const { email } = data as { email: string }
  const isOpen = (await db.user.count({ where: { id, email, emailProvedAt: null } })) > 0
  return isOpen ? emailVerificationCode(vault, { id, email }) : null
}
