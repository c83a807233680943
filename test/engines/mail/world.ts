// The API, a mail server on loopback, and a worker that sends to it.
import { createMailHandlers, type MailOptions } from '../../../src/engines/mail/handlers.ts'
import { type Handlers, startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { append, type EventType } from '../../../src/services/events/index.ts'
import { setMailEnabled } from '../../../src/services/mail/outbox.ts'
import { addMember } from '../../../src/services/people/memberships.ts'
import type { Role } from '../../../src/services/people/roles.ts'
import { createUser } from '../../../src/services/people/users.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'
import { type Mailbox, startMailbox } from './mailbox.ts'

export type Told = { type: EventType; subject?: string; data: object; projectId?: string | null; actor?: string }

export type MailWorld = {
  api: TestApi
  mailbox: Mailbox
  work(options?: MailOptions, others?: Handlers): Worker
  /** An account of its own with a member. */
  account(role?: Role): Promise<{ accountId: string; token: string; email: string; userId: string }>
  join(
    accountId: string,
    options?: { role?: Role; projectIds?: string[]; email?: string; name?: string; proved?: boolean },
  ): Promise<Person>
  /** Writes an event; returns its id. */
  emit(accountId: string, event: Told): Promise<string>
  /** Waits until no job of mails is left that is due. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export type Person = { email: string; userId: string }

let people = 0

export async function startMailWorld(environment: Record<string, string> = {}): Promise<MailWorld> {
  const mailbox = await startMailbox()
  const api = await startApi({ SMTP_URL: mailbox.url, MAIL_FROM: 'Berth <berth@mail.example>', ...environment })
  await setMailEnabled(api.db, api.config.mail !== null)
  const workers: Worker[] = []

  const join: MailWorld['join'] = async (accountId, options = {}) => {
    const { role = 'owner', projectIds = [], email = `member-${++people}@example.com`, name, proved = true } = options
    return api.db.$transaction(async (db) => {
      const user = await createUser(db, { email, name, proved })
      await addMember(db, { accountId, user, role, projectIds })
      return { email, userId: user.id }
    })
  }

  return {
    api,
    mailbox,
    join,
    work(options, others) {
      const { db, notifications, log } = api.deps
      const worker = startWorker(db, notifications, log, { ...createMailHandlers(api.deps, options), ...others })
      workers.push(worker)
      return worker
    },
    async account(role) {
      const made = await api.newAccount()
      return { ...made, ...(await join(made.accountId, role && { role })) }
    },
    async emit(accountId, { type, subject = 'subject', data, projectId = null, actor = 'system' }) {
      await append(api.db, [{ accountId, projectId, type, actor, subject, data }])
      const written = await api.db.event.findFirstOrThrow({ where: { accountId }, orderBy: { id: 'desc' } })
      return written.id
    },
    async idle() {
      const where = { kind: { in: ['notify', 'mail'] }, failedAt: null, runAt: { lte: new Date(Date.now() + 1000) } }
      await until(async () => (await api.db.job.count({ where })) === 0)
    },
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
      await api.stop()
      await mailbox.close()
    },
  }
}
