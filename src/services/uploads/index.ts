// Door of uploads: files checked against their hashes before they are stored.
export { listArchive, refuseLarge, spool, storeArchive } from './archives.ts'
export { completeBatch, receivePiece, storeBatch } from './arrival.ts'
export { openReceiver, type Receiver } from './receiver.ts'
export {
  addFiles,
  createSource,
  knownContents,
  lockUploads,
  readFiles,
  readMissing,
  shareSources,
} from './statements.ts'
export {
  checkUploadBytes,
  deleteOldUploads,
  findUpload,
  markLost,
  readNeeded,
  reserve,
  waitMs,
} from './uploads.ts'
