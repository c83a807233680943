// Door of mail: whom an event is told to, and what has been sent.
export { type DueMail, findDueMail, NotDue } from './due.ts'
export { type MailKind, mailKinds, viewMailKinds } from './kinds.ts'
export { notify } from './notify.ts'
export { endMail, forgetOldMails, type MailEnd, type MailKey, noteFailure, switchMail, waitingMails } from './outbox.ts'
export { kindOfLink, muteMails, unsubscribeUrl } from './unsubscribe.ts'
