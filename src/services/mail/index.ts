// Public entry point of mail: recipients of events, and the outbox.
export { type DueMail, findDueMail, NotDue } from './due.ts'
export { type MailKind, mailKinds, viewMailKinds } from './kinds.ts'
export { notify } from './notify.ts'
export {
  countWaitingMails,
  deleteOldMails,
  endMail,
  type MailKey,
  type MailOutcome,
  recordFailure,
  setMailEnabled,
} from './outbox.ts'
export { muteMails, unsubscribeUrl, verifyUnsubscribeLink } from './unsubscribe.ts'
