// Sends an email to test the settings, without a job, so that the operator sees the server's reply.
import type { Config } from '../../config.ts'
import { newSecret } from '../../platform/secrets/secrets.ts'
import { inUtc } from './contents.ts'
import { renderEmail } from './render.ts'
import { createMailTransport, type MailServer, type TransportOptions } from './transport.ts'

export type TestMail = { server: MailServer; baseUrl: Config['baseUrl']; address: string }

/** Throws a MailFailure with the server's reply. */
export async function sendTestMail({ server, baseUrl, address }: TestMail, options?: TransportOptions): Promise<void> {
  const letter = renderEmail(
    {
      subject: 'A test of emails from Berth',
      what: 'Emails from Berth arrive at this address.',
      facts: [
        ['Sent', inUtc(new Date())],
        ['By', `${server.host}:${server.port}`],
      ],
      next: 'Check in its source that SPF and DKIM passed, so that other servers don’t treat emails as spam.',
      link: { title: 'Open Berth', url: baseUrl },
      because: 'You get this email because the operator ran berth mail test.',
    },
    null,
  )
  const domain = server.from.address.slice(server.from.address.lastIndexOf('@') + 1)
  const message = {
    to: { name: '', address },
    ...letter,
    messageId: `<test.${newSecret()}@${domain}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
  await createMailTransport(server, options).send(message, new AbortController().signal)
}
