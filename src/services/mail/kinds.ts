// The kinds of mails: how a person's settings call each, who may see what it tells of, and which events it comes from.
import { mailKindNames } from '../../schemas/mails.ts'
import type { EventType } from '../events/index.ts'
import type { Scope } from '../identity/index.ts'

export { mailKindNames }

/** The kinds that a person can mute. */
export type MailKind = (typeof mailKindNames)[number]

type Row = {
  /** For the person's settings, and for the page behind a link that mutes. */
  title: string
  /** Who gets it: members whose role has this scope and whose projects include the event's; null: the person it is about. */
  scope: Scope | null
  /** About who can get in: the person who acted is told as well. */
  security: boolean
}

/** All of them are on until the person mutes them, and nobody else can. */
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
  'domain-lost': { title: 'A domain is verified no longer', scope: 'domains:read', security: false },
  'certificate-failing': { title: 'A certificate cannot be renewed', scope: 'domains:read', security: false },
  'webhook-disabled': { title: 'A webhook was disabled', scope: 'webhooks:read', security: false },
  'ticket-reply': { title: 'Support answered a ticket', scope: 'tickets:read', security: false },
  'new-token': { title: 'A token was made', scope: 'tokens:read', security: true },
  'new-sign-in': { title: 'Somebody signed in as you', scope: null, security: true },
}

export const isMailKind = (text: string): text is MailKind => Object.hasOwn(mailKinds, text)

/** These go to an address that is nobody's yet, so there is nothing to mute. */
export type AnyMailKind = MailKind | 'invitation' | 'address'

/** The events that mails come from; the trigger `event_mail` has the same list. */
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
