// Reads the content of a due email at sending time, so it goes only to people who may still see it.
import type { Db } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { type DueInvitation, findDueEmailCode, findDueInvitation } from './address-mails.ts'
import { audienceOf } from './audience.ts'
import { type AnyMailKind, isMailKind, type MailKind } from './kinds.ts'
import { findFailure, type MailEvent } from './occasions.ts'
import { findMailState, type MailKey, maxAgeMs, startMail } from './outbox.ts'

type DueFields = {
  to: string
  event: MailEvent
  /** The name of the account. */
  account: string
  /** The name of the actor; null for the platform itself. */
  actor: string | null
  /** How many further events the email mentions. */
  more: number
}

export type DueMail = MailKey &
  DueFields &
  (
    | {
        kind: MailKind
        /** The IP address of a sign-in. */
        address: string | null
        /** The `about` of an earlier email. */
        inReplyTo: string | null
      }
    | { kind: 'invitation'; invitation: DueInvitation }
    | { kind: 'address'; code: string }
  )

/** The reason not to send an email, or not yet (`later`). */
export class NotDue extends Error {
  readonly later: boolean

  constructor(reason: string, later = false) {
    super(reason)
    this.later = later
  }
}

/** Returns null if the email is settled already. Throws NotDue. */
export async function findDueMail(db: Db, vault: Vault, key: MailKey): Promise<DueMail | null> {
  const mail = await startMail(db, key)
  if (!mail) return null
  if (mail.dueAt.getTime() < Date.now() - maxAgeMs) throw new NotDue('it could not be sent within a day')
  const event = await db.event.findUnique({ where: { id: mail.eventId } })
  if (!event) throw new NotDue('the event is gone')
  const { name: account } = await db.account.findUniqueOrThrow({ where: { id: mail.accountId } })
  const fields = { ...key, event, account, actor: await nameOf(db, event.actor), more: mail.more }
  const kind = mail.kind as AnyMailKind
  if (kind === 'invitation') {
    const invitation = await findDueInvitation(db, vault, event)
    if (!invitation) throw new NotDue('the invitation was accepted or deleted, or has expired')
    return { ...fields, kind, to: mail.recipient, invitation }
  }
  if (kind === 'address') {
    const code = await findDueEmailCode(db, vault, event)
    if (code === null) throw new NotDue('the address was verified or changed')
    return { ...fields, kind, to: mail.recipient, code }
  }
  if (!isMailKind(kind)) throw new NotDue('this kind of email no longer exists')
  const [user] = await audienceOf(db, kind, event, mail.recipient)
  if (!user) throw new NotDue('the person muted it, can no longer see it, or has not verified the address')
  const inReplyTo = kind === 'production-recovered' ? await findFailureMail(db, event, mail) : null
  const session = kind === 'new-sign-in' ? await db.session.findUnique({ where: { id: mail.about } }) : null
  return { ...fields, kind, to: user.email, address: session?.address ?? null, inReplyTo }
}

/** Finds the email about the failure. Only its recipients hear of the recovery, and only after it was sent. */
async function findFailureMail(db: Db, event: MailEvent, { recipient }: MailKey): Promise<string> {
  const about = await findFailure(db, event)
  const state = about && (await findMailState(db, { recipient, about }))
  if (state === 'SENT') return about!
  throw new NotDue('the email about the failure was not sent', state === 'WAITING')
}

async function nameOf(db: Db, actor: string): Promise<string | null> {
  if (actor.startsWith('usr_')) return (await db.user.findUnique({ where: { id: actor } }))?.name ?? null
  if (actor.startsWith('tok_')) return (await db.token.findUnique({ where: { id: actor } }))?.name ?? null
  return null
}
