// The email jobs: one finds the recipients of an event, the other sends an email to one person.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import { type Handler, Postponed } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import {
  countWaitingMails,
  type DueMail,
  endMail,
  findDueMail,
  type MailKey,
  type MailOutcome,
  NotDue,
  notify,
  recordFailure,
  unsubscribeUrl,
} from '../../services/mail/index.ts'
import { contentOf } from './contents.ts'
import { createMailMetrics } from './metrics.ts'
import { renderEmail, type SettingsLinks } from './render.ts'
import { createMailTransport, MailFailure, type MailServer, type Message, type TransportOptions } from './transport.ts'

export type MailDeps = {
  db: Database
  config: Pick<Config, 'mail' | 'baseUrl'>
  vault: Vault
  log: Logger
  registry?: Registry
}

export type MailOptions = TransportOptions & { retryDelaysMs?: readonly number[] }

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** Less than a day in total, after which the news is old. */
export const mailRetryTable = [
  // A restart of the mail server.
  minuteMs,
  // Greylisting: most servers accept an email that is resent after five minutes.
  5 * minuteMs,
  30 * minuteMs,
  // An outage that somebody has to fix.
  2 * hourMs,
  6 * hourMs,
  12 * hourMs,
] as const

// Only the database can fail here.
const notifyDelaysMs = [1_000, 5_000, 30_000, 5 * minuteMs, 30 * minuteMs, 2 * hourMs]
// How long to wait for an email that must be sent first.
const orderDelayMs = 30_000
// Few, so that a hanging mail server holds few connections. Other kinds of jobs have their own slots.
const concurrency = 4

type MailHandlers = { notify: Handler<'notify'>; mail: Handler<'mail'> }

export function createMailHandlers(deps: MailDeps, options: MailOptions = {}): MailHandlers {
  const { db, config, log, registry } = deps
  const { mail: server } = config
  const metrics = createMailMetrics(registry, async () => (server ? countWaitingMails(db) : 0))
  if (!server) return idle
  const transport = createMailTransport(server, options)

  async function end(key: MailKey, ended: MailOutcome): Promise<void> {
    if (!(await endMail(db, key, ended))) return
    metrics.ended(ended.state === 'SENT' ? 'sent' : ended.state === 'FAILED' ? 'failed' : 'dropped')
    if (ended.state === 'FAILED') log.warn({ ...key, reason: ended.reason }, 'a mail was given up')
  }

  async function send(key: MailKey, signal: AbortSignal): Promise<void> {
    const due = await findDueMail(db, deps.vault, key)
    if (!due) return
    await transport.send(messageOf(deps, server!, due), signal)
    await end(key, { state: 'SENT' })
  }

  return {
    notify: {
      concurrency,
      retryDelaysMs: notifyDelaysMs,
      run: ({ eventId }) => notify(db, eventId),
      async giveUp({ eventId }, error) {
        log.error({ err: error, eventId }, 'nobody is told of an event by mail')
      },
    },
    mail: {
      concurrency,
      retryDelaysMs: options.retryDelaysMs ?? mailRetryTable,
      async run(key, { signal }) {
        try {
          await send(key, signal)
        } catch (error) {
          if (error instanceof NotDue) {
            if (error.later) throw new Postponed(error.message, { payload: key, delayMs: orderDelayMs })
            return end(key, { state: 'DROPPED', reason: error.message })
          }
          if (!(error instanceof MailFailure)) throw error
          if (error.final) return end(key, { state: 'FAILED', reason: error.message })
          await recordFailure(db, key, error.message)
          throw error
        }
      },
      async giveUp(key, error) {
        await end(key, { state: 'FAILED', reason: error.message })
      },
    },
  }
}

/** Without a mail server, this worker takes no jobs, because another worker may have one. */
const never = { concurrency: 0, retryDelaysMs: [], run: async () => {}, giveUp: async () => {} }
const idle: MailHandlers = { notify: never, mail: never }

function messageOf({ config, vault }: MailDeps, { from }: MailServer, mail: DueMail): Message {
  const { baseUrl } = config
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)
  const isToAddress = mail.kind === 'invitation' || mail.kind === 'address'
  // The same for each retry, so that receivers can deduplicate. Emails to a plain address have no recipient id.
  const idOf = (about: string) => `<${about}${isToAddress ? '' : `.${mail.recipient}`}@${domain}>`
  const unsubscribe = isToAddress ? null : unsubscribeUrl(baseUrl, vault, mail.recipient, mail.kind)
  const ways: SettingsLinks = unsubscribe === null ? null : { unsubscribe, settings: `${baseUrl}/me` }
  return {
    // An object, so that no character is parsed as another address.
    to: { name: '', address: mail.to },
    ...renderEmail(contentOf(baseUrl, mail), ways, mail.more),
    messageId: idOf(mail.about),
    ...(!isToAddress && mail.inReplyTo !== null && { inReplyTo: idOf(mail.inReplyTo) }),
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      ...(unsubscribe !== null && {
        'List-Unsubscribe': `<${unsubscribe}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      }),
    },
  }
}
