// Public entry point of certificates: ACME orders, certificates in service, and expiry warnings.
export { findOrCreateRoot, findRootCertificate, type Root } from './development-root.ts'
export { domainCertificate } from './domain-certificates.ts'
export {
  deleteUnusedCertificates,
  queueIssuesOf,
  queueMissingJobs,
  queueOutdatedIssues,
  queuePlatformJobs,
  setRenewAt,
} from './jobs.ts'
export type { Holder, InService, ManagedCertificate, OrderScope } from './managed-certificate.ts'
export {
  type AcmeOrder,
  type Challenge,
  deleteOldOrders,
  extendLease,
  findOrAddAccount,
  type Lease,
  leaseOrder,
  publishChallenges,
  releaseOrder,
  resetOrder,
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
