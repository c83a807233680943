// Door of DNS: zones, records, signing, updates and what nameservers serve.
export {
  type AliasChanges,
  type AliasRow,
  type AliasZone,
  readAliasZone,
  requeueOverdueAliases,
  storeAliases,
  zoneInPages,
} from './aliases.ts'
export { applyBatch, applyPlanned, checkBatch } from './batches.ts'
export { compareDiscovered, type Discover, type Discovered, discoverZone, type FoundRecord } from './discover.ts'
export { checkRecord, createRecord, findRecord, findZone, listRecords } from './dns-records.ts'
export {
  checkDnssec,
  dnssecVersion,
  findDnssec,
  findForeignKeys,
  putDnssec,
  putForeignKeys,
  rollOver,
} from './dnssec.ts'
export {
  foreignDs,
  type ParentAnswer,
  readSigningCheck,
  requeueForgottenSigning,
  type SigningCheck,
  settleSigning,
  signingJob,
} from './dnssec-checks.ts'
export { foreignText } from './dnssec-reasons.ts'
export type { SigningOptions } from './dnssec-view.ts'
export {
  checkKey,
  createKey,
  deleteKey,
  findKey,
  keyVersion,
  listKeys,
  noteKeyUse,
  readKeyIds,
  readKeys,
  type ServedKey,
} from './keys.ts'
export { addRecord } from './new-records.ts'
export { platformDs, signPlatformZone, unsignPlatformZone } from './platform-keys.ts'
export { announcePlatformZones, type PlatformZones, platformZones } from './platform-zones.ts'
export { changeRecord, checkChange, deleteRecord } from './record-changes.ts'
export { recordsAllowed } from './record-limits.ts'
export { checkRrset, deleteRrset, findRrset, listRrsets, putRrset } from './rrsets.ts'
export {
  beginLag,
  endLag,
  forgetLag,
  knownLags,
  type LagReason,
  lagsOf,
  noteCheck,
  secondariesOf,
  whyBehind,
} from './secondary-lags.ts'
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
} from './served-zones.ts'
export { findServedClaim } from './statements.ts'
export { createZoneWork, type ZoneUpload, type ZoneWork } from './thread/zone-work.ts'
export type { Prerequisite, UpdateStep } from './update-plans.ts'
export { applyUpdate, forgetOldUpdates } from './updates.ts'
export { createZoneKey } from './zone-keys.ts'
export {
  checkPrimary,
  deletePrimary,
  type Followed,
  findPrimary,
  type Look,
  noteLook,
  primaryVersion,
  putPrimary,
  readFollowed,
  requeueOverdueZones,
  takeNotice,
} from './zone-primaries.ts'
export { purgeZone } from './zone-purge.ts'
export {
  addSignatures,
  type DueSignature,
  dueSignatures,
  postponeSignatures,
  readPrivateKeys,
  readSignatures,
  settleSignatures,
} from './zone-signatures.ts'
export { generatedNames, generatedRecords, generatedTtl, soaOf, zoneFileLimitBytes } from './zones.ts'
