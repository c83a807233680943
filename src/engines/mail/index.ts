// The entry of the engine that sends mails.
export { createMailHandlers } from './handlers.ts'
export { sendTestMail } from './test-mail.ts'
export { MailFailure } from './transport.ts'
