// Public entry point of uploads: files that are checked against their hashes and then stored.
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
  type Content,
  checkRoom,
  checkUploadBytes,
  complete,
  deleteOldUploads,
  findUpload,
  markLost,
  readNeeded,
  reserve,
  type UploadReservation,
  waitMs,
} from './uploads.ts'
