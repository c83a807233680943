// Public entry point of DNS: zones, records, DNSSEC, updates, and the data that nameservers serve.

export {
  checkDnssec,
  dnssecVersion,
  findDnssec,
  findForeignKeys,
  putDnssec,
  putForeignKeys,
  rollOver,
} from './dnssec/dnssec.ts'
export {
  foreignDs,
  type ParentAnswer,
  readSigningCheck,
  requeueForgottenSigning,
  type SigningCheck,
  settleSigning,
  signingJob,
} from './dnssec/dnssec-checks.ts'
export { foreignText } from './dnssec/dnssec-reasons.ts'
export type { SigningOptions } from './dnssec/dnssec-view.ts'
export { platformDs, signPlatformZone, unsignPlatformZone } from './dnssec/platform-keys.ts'
export { createZoneKey } from './dnssec/zone-keys.ts'
export {
  addSignatures,
  type DueSignature,
  dueSignatures,
  postponeSignatures,
  readPrivateKeys,
  readSignatures,
  settleSignatures,
} from './dnssec/zone-signatures.ts'
export { applyBatch, applyPlanned, checkBatch } from './records/batches.ts'
export {
  compareDiscovered,
  type Discover,
  type Discovered,
  discoverZone,
  type FoundRecord,
} from './records/discover.ts'
export { checkRecord, createRecord, findRecord, findZone, listRecords } from './records/dns-records.ts'
export {
  checkKey,
  createKey,
  deleteKey,
  findKey,
  keyVersion,
  listKeys,
  readKeyIds,
  readKeys,
  recordKeyUse,
  type ServedKey,
} from './records/keys.ts'
export { addRecord } from './records/new-records.ts'
export { changeRecord, checkChange, deleteRecord } from './records/record-changes.ts'
export { recordsAllowed } from './records/record-limits.ts'
export { checkRrset, deleteRrset, findRrset, listRrsets, putRrset } from './records/rrsets.ts'
export type { Prerequisite, UpdateStep } from './records/update-plans.ts'
export { applyUpdate, deleteOldUpdates } from './records/updates.ts'
export { findServedClaim } from './sql/statements.ts'
export { createZoneWork, type ZoneUpload, type ZoneWork } from './thread/zone-work.ts'
export {
  type AliasChanges,
  type AliasRow,
  type AliasZone,
  readAliasZone,
  requeueOverdueAliases,
  storeAliases,
  zoneInPages,
} from './zones/aliases.ts'
export { announcePlatformZones, type PlatformZones, platformZones } from './zones/platform-zones.ts'
export {
  beginLag,
  deleteLag,
  endLag,
  explainLag,
  knownLags,
  type LagReason,
  lagsOf,
  recordSecondaryCheck,
  secondariesOf,
} from './zones/secondary-lags.ts'
export {
  aliasedType,
  challengeType,
  platformIds,
  readLargeZone,
  readServedChanges,
  readServedStates,
  readServedZones,
  type ServedSigning,
  type ServedZoneChange,
  type ServedZoneRow,
  type ServedZoneState,
} from './zones/served-zones.ts'
export {
  checkPrimary,
  deletePrimary,
  type Followed,
  findPrimary,
  handleNotify,
  type PrimaryCheck,
  primaryVersion,
  putPrimary,
  readFollowed,
  recordPrimaryCheck,
  requeueOverdueZones,
} from './zones/zone-primaries.ts'
export { purgeZone } from './zones/zone-purge.ts'
export { generatedNames, generatedRecords, generatedTtl, soaOf, zoneFileLimitBytes } from './zones/zones.ts'
