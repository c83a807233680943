// The public interface of the engine that sends email.
export { createMailHandlers } from './handlers.ts'
export { sendTestMail } from './test-mail.ts'
export { MailFailure } from './transport.ts'
