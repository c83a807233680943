// Public entry point of domains: attaching, claiming, verifying and changing them.
export { assignDomain } from './assignment.ts'
export { attachDomain, changeDomain, checkDomainChange, checkNewDomain } from './changes.ts'
export { hasEnded, nextRecheckAt, nextSearchAt } from './check-schedule.ts'
export { endedReason, sharedAdvice, sharedText, type TxtRecord, txtAdvice } from './claim-reasons.ts'
export {
  type CertificateView,
  type DomainView,
  deleteDomain,
  deleteOldHolds,
  findDomain,
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
  type Observed,
  type Rivals,
  readRivals,
  recordCertificate,
  recordCheck,
} from './states.ts'
