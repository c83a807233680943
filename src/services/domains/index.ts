// Door of domains: attached, claimed, checked and moved.
export { assignDomain } from './assignment.ts'
export { attachDomain, changeDomain, checkDomainChange, checkNewDomain } from './changes.ts'
export { hasEnded, nextRecheckAt, nextSearchAt } from './check-schedule.ts'
export { endedReason, sharedAdvice, sharedText, type TxtRecord, txtAdvice } from './claim-reasons.ts'
export {
  type CertificateView,
  type DomainView,
  deleteDomain,
  findDomain,
  forgetOldHolds,
  isSettled,
  listDomains,
  requestVerification,
  showDomain,
  type ViewOptions,
} from './domains.ts'
export { adoptNameservers, isExclusive, nameserversOf } from './nameservers.ts'
export { checkedDomain, lockCheckedDomain, lockDomain, lockHost, queueForgottenChecks } from './statements.ts'
export {
  changeSsl,
  issueJob,
  type Method,
  markEnded,
  markProved,
  markUnverified,
  noteCertificate,
  type Observed,
  type Rivals,
  readRivals,
  recordCheck,
} from './states.ts'
