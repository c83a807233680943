// The link by which a mail mutes its kind without a sign-in (RFC 8058): signed, and good for one person and kind alone.
import type { Db } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { isMailKind, type MailKind } from './kinds.ts'

const purpose = 'unsubscribe'

const textOf = (userId: string, kind: string) => `${userId} ${kind}`

export function unsubscribeUrl(baseUrl: string, vault: Vault, userId: string, kind: MailKind): string {
  const signature = vault.sign(textOf(userId, kind), purpose).toString('base64url')
  // In the query, which no log has.
  return `${baseUrl}/mail/unsubscribe?${new URLSearchParams({ user: userId, kind, signature })}`
}

/** The kind that the link mutes; null if it was not made here. */
export function kindOfLink(vault: Vault, link: { user: string; kind: string; signature: string }): MailKind | null {
  const { user, kind, signature } = link
  if (!isMailKind(kind)) return null
  return vault.verify(Buffer.from(signature, 'base64url'), textOf(user, kind), purpose) ? kind : null
}

/** Nothing happens if it is muted already, or the person is gone. */
export async function muteMails(db: Db, userId: string, kind: MailKind): Promise<void> {
  const where = { id: userId, NOT: { mutedMails: { has: kind } } }
  await db.user.updateMany({ where, data: { mutedMails: { push: kind } } })
}
