// Door of uploads: files checked against their hashes before they are stored.
export { listArchive, refuseLarge, spool, storeArchive } from './archives.ts'
export { readBatch } from './batch.ts'
export { openReceiver, type Piece, type Receiver } from './receiver.ts'
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
  checkBytesHeld,
  checkRoom,
  complete,
  findUpload,
  forgetOldUploads,
  noteLost,
  type Room,
  readNeeded,
  release,
  reserve,
  waitMs,
} from './uploads.ts'
