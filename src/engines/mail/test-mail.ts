// A mail to try the settings by: sent at once, without a job, so that whoever asked sees what the server says.
import type { Config } from '../../config.ts'
import { newSecret } from '../../platform/secrets/secrets.ts'
import { writeLetter } from './letter.ts'
import { inUtc } from './letters.ts'
import { createMailTransport, type MailServer, type TransportOptions } from './transport.ts'

export type TestMail = { server: MailServer; baseUrl: Config['baseUrl']; address: string }

/** Throws a MailFailure with the words of the server. */
export async function sendTestMail({ server, baseUrl, address }: TestMail, options?: TransportOptions): Promise<void> {
  const letter = writeLetter(
    {
      subject: 'A test of mails from Berth',
      what: 'Mails from Berth arrive at this address.',
      facts: [
        ['Sent', inUtc(new Date())],
        ['By', `${server.host}:${server.port}`],
      ],
      next: 'There is nothing to do. See in its source that SPF and DKIM passed, so that others do not take mails for spam.',
      link: { title: 'Open Berth', url: baseUrl },
      because: 'You get this mail because the operator asked for it with berth mail test.',
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
