// Door of certificates: orders, what is in service, and who is warned when one can't be renewed.
export { findRootCertificate, keepRoot, type Root } from './development-root.ts'
export { domainCertificate } from './domain-certificates.ts'
export {
  dropUnusedCertificates,
  queueIssuesOf,
  queueMissingJobs,
  queueOutdated,
  queuePlatformJobs,
  setRenewAt,
} from './jobs.ts'
export type { Holder, InService, ManagedCertificate, OrderScope } from './managed-certificate.ts'
export {
  type AcmeOrder,
  beginOrder,
  type Challenge,
  dropOldOrders,
  extendLease,
  findOrAddAccount,
  type Lease,
  leaseOrder,
  publishChallenges,
  releaseOrder,
  setAccountUrl,
  setOrderUrl,
} from './orders.ts'
export { platformCertificate, platformJob, refusesWildcard } from './platform-certificates.ts'
export {
  readDomainCertificateStates,
  readHttpChallenges,
  readPlatformCertificateStates,
  readServedCertificates,
  type ServedCertificateRow,
  type ServedCertificateState,
} from './served-certificates.ts'
