// Kinds of email that a person can mute.
import { Type } from '@sinclair/typebox'
import { Choice } from './common.ts'

export const mailKindNames = [
  'production-failed',
  'production-recovered',
  'domain-lost',
  'certificate-failing',
  'webhook-disabled',
  'ticket-reply',
  'new-token',
  'new-sign-in',
] as const

export const MutedMails = Type.Array(Choice(mailKindNames), {
  uniqueItems: true,
  maxItems: mailKindNames.length,
  description: 'Mails that the person does not want',
})
