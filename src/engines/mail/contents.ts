// The content of each kind of email, built from its event when the email is sent.
import type { DeploymentView } from '../../services/deployments/index.ts'
import type { DomainView } from '../../services/domains/index.ts'
import type { DueMail, MailKind } from '../../services/mail/index.ts'
import type { TicketView } from '../../services/tickets/index.ts'
import type { TokenView } from '../../services/tokens/index.ts'
import type { WebhookView } from '../../services/webhooks/index.ts'
import type { EmailContent } from './render.ts'

const dayMs = 86_400_000

/** `16 Nov 2026, 09:32 UTC` */
export function inUtc(time: Date | string): string {
  const text = new Date(time).toUTCString()
  return `${text.slice(5, 16)}, ${text.slice(17, 22)} UTC`
}

const optionalTime = (time: string | null | undefined) => (time ? inUtc(time) : null)

type Body = Omit<EmailContent, 'because' | 'link'> & { link: { title: string; path: string } }

const part = encodeURIComponent

function certificateOf({ event }: DueMail): Body {
  const { name, certificate } = event.data as unknown as DomainView
  const path = `/domains/${part(name)}`
  const facts: EmailContent['facts'] = [
    ['Domain', name],
    ['Valid until', optionalTime(certificate?.notAfter)],
    ['Last error', certificate?.lastError ?? null],
    ['Next attempt', optionalTime(certificate?.nextAttemptAt)],
  ]
  const next = 'We retry renewal automatically. Fix the cause shown in the last error.'
  const leftMs = new Date(certificate?.notAfter ?? 0).getTime() - event.createdAt.getTime()
  if (event.type === 'domain.ssl.expired' || leftMs <= 0) {
    return {
      subject: `The certificate of ${name} has expired`,
      what: `The certificate of ${name} has expired, so browsers refuse the site.`,
      facts,
      next,
      link: { title: 'See the domain', path },
    }
  }
  const days = Math.floor(leftMs / dayMs)
  const left = days === 0 ? 'less than a day' : days === 1 ? '1 day' : `${days} days`
  return {
    subject: `The certificate of ${name} cannot be renewed: ${left} left`,
    what: `The certificate of ${name} could not be renewed. It expires in ${left}.`,
    facts,
    next,
    link: { title: 'See the domain', path },
  }
}

const contents: Record<MailKind, (mail: DueMail & { kind: MailKind }) => Body> = {
  'production-failed': ({ event }) => {
    const { id, project, ref, commit, error } = event.data as unknown as DeploymentView
    return {
      subject: `Production deployment of ${project} failed`,
      what: `A production deployment of ${project} failed. The previous deployment stays in production.`,
      // Only the first line, because a server's output follows it.
      facts: [
        ['Project', project],
        ['Commit', `${commit} (${ref})`],
        ['Reason', error?.message.split('\n', 1)[0] ?? null],
        ['When', inUtc(event.createdAt)],
      ],
      next: 'Read the log, fix the cause and deploy again. You won’t get another email until a deployment has worked.',
      link: { title: 'Read the log', path: `/deployments/${part(id)}` },
    }
  },
  'production-recovered': ({ event }) => {
    const { id, project, ref, commit } = event.data as unknown as DeploymentView
    return {
      subject: `Production deployment of ${project} works again`,
      what: `A production deployment of ${project} is ready, after one or more failures.`,
      facts: [
        ['Project', project],
        ['Commit', `${commit} (${ref})`],
        ['When', inUtc(event.createdAt)],
      ],
      next: 'There is nothing to do.',
      link: { title: 'See the deployment', path: `/deployments/${part(id)}` },
    }
  },
  'domain-lost': ({ event }) => {
    const { name, verification } = event.data as unknown as DomainView
    return {
      subject: `${name} is no longer verified`,
      what: `We no longer find the proof that you own ${name}, so the domain is no longer verified.`,
      facts: [
        ['Domain', name],
        ['Reason', verification.reason],
        ['When', inUtc(event.createdAt)],
        ['Next check', optionalTime(verification.nextCheckAt)],
      ],
      next: 'Restore the nameservers or the TXT record shown on the domain’s page, then start a check there.',
      link: { title: 'See the settings', path: `/domains/${part(name)}` },
    }
  },
  'certificate-failing': certificateOf,
  'webhook-disabled': ({ event }) => {
    const { id, url } = event.data as unknown as WebhookView
    // The path may be a secret.
    const { origin } = new URL(url)
    return {
      subject: `The webhook to ${origin} was disabled`,
      what: `The webhook to ${origin} was disabled, because its receiver is gone or has failed for five days.`,
      facts: [
        ['Webhook', id],
        ['When', inUtc(event.createdAt)],
      ],
      next: 'Fix the receiver, then turn the webhook back on. We send the waiting events then.',
      link: { title: 'See its last attempts', path: `/webhooks/${part(id)}` },
    }
  },
  'ticket-reply': ({ event }) => {
    const { id, subject, status } = event.data as unknown as TicketView
    return {
      subject: `Support answered: ${subject}`,
      what: `Support answered the ticket “${subject}”.`,
      facts: [
        ['Ticket', id],
        ['Status', status],
        ['When', inUtc(event.createdAt)],
      ],
      next: 'Read the answer, and reply there if you have more questions.',
      link: { title: 'Read the answer', path: `/tickets/${part(id)}` },
    }
  },
  'new-token': ({ event, actor }) => {
    const { name, scopes, projects, expiresAt } = event.data as unknown as TokenView
    return {
      subject: `A new token was created: ${name}`,
      what: `A token named “${name}” was created.`,
      facts: [
        ['Created by', actor],
        ['Scopes', scopes.join(', ')],
        ['Projects', projects?.join(', ') ?? 'all'],
        ['Expires', optionalTime(expiresAt) ?? 'never'],
        ['When', inUtc(event.createdAt)],
      ],
      next: 'If none of you created it, revoke it now and check who can sign in to the account.',
      link: { title: 'See the tokens', path: '/tokens' },
    }
  },
  'new-sign-in': ({ event, address }) => {
    const { method, userAgent } = event.data as { method?: string; userAgent?: string }
    return {
      subject: 'New sign-in to your Berth account',
      what: 'Somebody signed in as you.',
      facts: [
        ['When', inUtc(event.createdAt)],
        ['How', method ?? null],
        ['From', address],
        ['Browser', userAgent ?? null],
      ],
      next: 'If that was you, there is nothing to do. If not, end the session and change how you sign in.',
      link: { title: 'See your sessions', path: '/me' },
    }
  },
}

function invitationOf({ event, account, actor, invitation }: DueMail & { kind: 'invitation' }): Body {
  const who = actor ?? 'Somebody'
  return {
    subject: `${who} invites you to ${account}`,
    what: `${who} invites you to the account “${account}” on Berth.`,
    facts: [
      ['Role', invitation.role],
      ['Invited', inUtc(event.createdAt)],
      ['Valid until', inUtc(invitation.expiresAt)],
    ],
    next: 'Open the link to accept. It works once. If you don’t know who invited you, ignore this email.',
    link: { title: 'Accept the invitation', path: `/setup#${invitation.code}` },
  }
}

function addressProofOf({ event, code }: DueMail & { kind: 'address' }): Body {
  const { name } = event.data as { name: string }
  return {
    subject: 'Is this your address?',
    what: `${name} entered this as their email address on Berth. We send no other email here until you confirm it.`,
    facts: [['When', inUtc(event.createdAt)]],
    next: 'If it is yours, open the link where you are signed in. If not, ignore this email; you won’t get another one.',
    link: { title: 'Confirm the address', path: `/me?proof=${code}` },
  }
}

export function contentOf(baseUrl: string, mail: DueMail): EmailContent {
  const isToAddress = mail.kind === 'invitation' || mail.kind === 'address'
  const { link, facts, ...body } =
    mail.kind === 'invitation'
      ? invitationOf(mail)
      : mail.kind === 'address'
        ? addressProofOf(mail)
        : contents[mail.kind](mail)
  const isPersonal = isToAddress || mail.kind === 'new-sign-in'
  return {
    ...body,
    facts: isPersonal ? facts : [['Account', mail.account], ...facts],
    link: { title: link.title, url: `${baseUrl}${link.path}` },
    because: isToAddress
      ? 'You get this email because somebody entered your address.'
      : `You get this email as a member of ${mail.account}.`,
  }
}
