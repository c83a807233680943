// Unsubscribe links (RFC 8058): they mute one kind of email for one person without a sign-in, and are signed.
import type { Db } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { isMailKind, type MailKind } from './kinds.ts'

const purpose = 'unsubscribe'

const textOf = (userId: string, kind: string) => `${userId} ${kind}`

export function unsubscribeUrl(baseUrl: string, vault: Vault, userId: string, kind: MailKind): string {
  const signature = vault.sign(textOf(userId, kind), purpose).toString('base64url')
  // In the query, because logs omit it.
  return `${baseUrl}/mail/unsubscribe?${new URLSearchParams({ user: userId, kind, signature })}`
}

/** Returns the kind that the link mutes; null if the signature is invalid. */
export function verifyUnsubscribeLink(
  vault: Vault,
  link: { user: string; kind: string; signature: string },
): MailKind | null {
  const { user, kind, signature } = link
  if (!isMailKind(kind)) return null
  return vault.verify(Buffer.from(signature, 'base64url'), textOf(user, kind), purpose) ? kind : null
}

/** Mutes a kind of email. Has no effect if it is muted already or the person was deleted. */
export async function muteMails(db: Db, userId: string, kind: MailKind): Promise<void> {
  const where = { id: userId, NOT: { mutedMails: { has: kind } } }
  await db.user.updateMany({ where, data: { mutedMails: { push: kind } } })
}
