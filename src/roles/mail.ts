// Sends the operator's test email; the worker sends all others.
export { MailFailure, sendTestMail } from '../engines/mail/index.ts'
