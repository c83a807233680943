// The kinds of emails: their titles in the settings, the scope that they need, and the events that trigger them.
import { mailKindNames } from '../../schemas/mails.ts'
import type { EventType } from '../events/index.ts'
import type { Scope } from '../identity/index.ts'

export { mailKindNames }

/** The kinds that a person can mute. */
export type MailKind = (typeof mailKindNames)[number]

type Row = {
  /** Shown in the person's settings and on the unsubscribe page. */
  title: string
  /** The scope that recipients need for the event's project; null: only the person whom the event is about. */
  scope: Scope | null
  /** About access to the account; the actor gets it too. */
  security: boolean
}

/** All kinds are on until the person mutes them; nobody else can. */
export const mailKinds: Record<MailKind, Row> = {
  'production-failed': {
    title: 'A production deployment failed after one that worked',
    scope: 'deployments:read',
    security: false,
  },
  'production-recovered': {
    title: 'Production deployments work again',
    scope: 'deployments:read',
    security: false,
  },
  'domain-lost': { title: 'A domain is no longer verified', scope: 'domains:read', security: false },
  'certificate-failing': { title: 'A certificate cannot be renewed', scope: 'domains:read', security: false },
  'webhook-disabled': { title: 'A webhook was disabled', scope: 'webhooks:read', security: false },
  'ticket-reply': { title: 'Support answered a ticket', scope: 'tickets:read', security: false },
  'new-token': { title: 'A token was created', scope: 'tokens:read', security: true },
  'new-sign-in': { title: 'Somebody signed in as you', scope: null, security: true },
}

export const isMailKind = (text: string): text is MailKind => Object.hasOwn(mailKinds, text)

/** The added kinds go to unproved emails, so nobody can mute them. */
export type AnyMailKind = MailKind | 'invitation' | 'address'

/** The events that trigger emails; the trigger `event_mail` has the same list. */
export const mailEvents: Partial<Record<EventType, AnyMailKind>> = {
  'deployment.error': 'production-failed',
  'deployment.ready': 'production-recovered',
  'domain.unverified': 'domain-lost',
  'domain.ssl.failing': 'certificate-failing',
  'domain.ssl.expired': 'certificate-failing',
  'webhook.disabled': 'webhook-disabled',
  'ticket.replied': 'ticket-reply',
  'token.created': 'new-token',
  'session.created': 'new-sign-in',
  'member.invited': 'invitation',
  'member.joined': 'address',
  'member.updated': 'address',
}

export function viewMailKinds() {
  return mailKindNames.map((name) => ({ name, title: mailKinds[name].title, security: mailKinds[name].security }))
}
