// `berth mail test <address>`: whether the mail server accepts email.
import { Value } from '@sinclair/typebox/value'
import type { Config } from '../config.ts'
import { MailFailure, sendTestMail } from '../roles/mail.ts'
import { Email } from '../schemas/people.ts'
import { UsageError } from './usage-error.ts'

export async function testMail({ mail: server, baseUrl }: Config, address: string): Promise<void> {
  if (!Value.Check(Email, address)) throw new UsageError(`${address} is not an email address such as ada@example.com.`)
  if (!server) throw new UsageError('SMTP_URL is not set, so no emails are sent; see docs/mail.md.')
  try {
    await sendTestMail({ server, baseUrl, address })
  } catch (error) {
    if (!(error instanceof MailFailure)) throw error
    throw new UsageError(`Not sent, ${error.message}`)
  }
  console.log(`${server.host}:${server.port} accepted an email from ${server.from.address} to ${address}.`)
}
