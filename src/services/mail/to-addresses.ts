// Mails to an address that nobody has proved: invitations, and the link that proves one. How many are sent, and their codes, which
// are in no row and no event.
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { hashToken, type Vault } from '../../platform/secrets/secrets.ts'
import { lockAccount } from '../identity/index.ts'
import { emailVerificationCode } from '../people/index.ts'
import type { MailEvent } from './occasions.ts'
import { queueSending } from './outbox.ts'

const hourMs = 60 * 60_000
/** So that nobody sends mails to strangers: what is more is dropped. The link of an invitation can be handed over instead. */
const maxPerAccount = { count: 20, withinMs: hourMs }
const maxPerAddress = { count: 3, withinMs: 24 * hourMs }

export const addressKinds = ['invitation', 'address'] as const
export type AddressKind = (typeof addressKinds)[number]

/** Queues a mail to the address that the event names, once however often it is called. */
export async function queueToAddress(db: Db, event: MailEvent, kind: AddressKind): Promise<void> {
  const { id: about, accountId } = event
  // The address and not the invitation or the person: either may come again, in the place of the one before.
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
  const mailed = (whose: object, { withinMs }: { withinMs: number }) => {
    const dueAt = { gt: new Date(Date.now() - withinMs) }
    return db.mail.count({ where: { ...whose, kind: { in: [...addressKinds] }, state: { not: 'DROPPED' }, dueAt } })
  }
  if ((await mailed({ accountId }, maxPerAccount)) >= maxPerAccount.count) {
    return 'the account sent too many within an hour'
  }
  const isTooMany = (await mailed({ recipient }, maxPerAddress)) >= maxPerAddress.count
  return isTooMany ? 'the address got too many within a day' : null
}

export type DueInvitation = { code: string; role: string; expiresAt: Date }

/**
 * The invitation, if it is still good, with a code of its own. It follows from the id and the platform's key, so a repeat
 * of the mail has the same one, and nothing is kept but its hash.
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

/** The code that proves the address; null if it is proved, or not the person's any more. */
export async function findDueProof(db: Db, vault: Vault, { subject: id, data }: MailEvent): Promise<string | null> {
  const { email } = data as { email: string }
  const isOpen = (await db.user.count({ where: { id, email, emailProvedAt: null } })) > 0
  return isOpen ? emailVerificationCode(vault, { id, email }) : null
}
