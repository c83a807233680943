// A mail by which the operator tries the mail server; the worker sends all others.
export { MailFailure, sendTestMail } from '../engines/mail/index.ts'
