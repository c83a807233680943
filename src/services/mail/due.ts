// A mail that is due, with all that its text is made from; read when it is sent, so that it goes only to who still may see it.
import type { Db } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { audienceOf } from './audience.ts'
import { type AnyMailKind, isMailKind, type MailKind } from './kinds.ts'
import { findFailure, type MailEvent } from './occasions.ts'
import { beginMail, type MailKey, stateOfMail, worthTellingMs } from './outbox.ts'
import { type DueInvitation, findDueInvitation, findDueProof } from './to-addresses.ts'

type Told = {
  to: string
  event: MailEvent
  /** Name of the account. */
  account: string
  /** Who did what the event tells of; null for the platform itself. */
  actor: string | null
  /** How many others it tells of. */
  more: number
}

export type DueMail = MailKey &
  Told &
  (
    | {
        kind: MailKind /** Of a sign-in: from where. */
        address: string | null /** Another mail. */
        inReplyTo: string | null
      }
    | { kind: 'invitation'; invitation: DueInvitation }
    | { kind: 'address'; code: string }
  )

/** Why a mail is not to be sent any more, or not yet. */
export class NotDue extends Error {
  readonly later: boolean

  constructor(reason: string, later = false) {
    super(reason)
    this.later = later
  }
}

/** Null if it was settled before. Throws NotDue. */
export async function findDueMail(db: Db, vault: Vault, key: MailKey): Promise<DueMail | null> {
  const mail = await beginMail(db, key)
  if (!mail) return null
  if (mail.dueAt.getTime() < Date.now() - worthTellingMs) throw new NotDue('it could not be sent within a day')
  const event = await db.event.findUnique({ where: { id: mail.eventId } })
  if (!event) throw new NotDue('the event is gone')
  const { name: account } = await db.account.findUniqueOrThrow({ where: { id: mail.accountId } })
  const told = { ...key, event, account, actor: await nameOf(db, event.actor), more: mail.more }
  const kind = mail.kind as AnyMailKind
  if (kind === 'invitation') {
    const invitation = await findDueInvitation(db, vault, event)
    if (!invitation) throw new NotDue('the invitation was accepted, withdrawn or has ended')
    return { ...told, kind, to: mail.recipient, invitation }
  }
  if (kind === 'address') {
    const code = await findDueProof(db, vault, event)
    if (code === null) throw new NotDue('the address was proved, or is not the person’s any more')
    return { ...told, kind, to: mail.recipient, code }
  }
  if (!isMailKind(kind)) throw new NotDue('no such mails are sent any more')
  const [user] = await audienceOf(db, kind, event, mail.recipient)
  if (!user) throw new NotDue('it was muted, the person may not see it any more, or the address is not proved')
  const inReplyTo = kind === 'production-recovered' ? await toldFailure(db, event, mail) : null
  const session = kind === 'new-sign-in' ? await db.session.findUnique({ where: { id: mail.about } }) : null
  return { ...told, kind, to: user.email, address: session?.address ?? null, inReplyTo }
}

/** The end of a streak is told to who was told of its beginning, and after that. */
async function toldFailure(db: Db, event: MailEvent, { recipient }: MailKey): Promise<string> {
  const about = await findFailure(db, event)
  const state = about && (await stateOfMail(db, { recipient, about }))
  if (state === 'SENT') return about!
  throw new NotDue('the failure was not told', state === 'WAITING')
}

async function nameOf(db: Db, actor: string): Promise<string | null> {
  if (actor.startsWith('usr_')) return (await db.user.findUnique({ where: { id: actor } }))?.name ?? null
  if (actor.startsWith('tok_')) return (await db.token.findUnique({ where: { id: actor } }))?.name ?? null
  return null
}
