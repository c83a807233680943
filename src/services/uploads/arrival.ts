// Content that arrives: stored, entered in the database, or discarded with the room reserved for it.
import type { Logger } from 'pino'
import type { Db } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { Actor } from '../identity/index.ts'
import { readBatch } from './batch.ts'
import type { Piece, Receiver } from './receiver.ts'
import {
  type Content,
  checkRoom,
  complete,
  findUpload,
  release,
  reserve,
  type UploadReservation,
  type UploadView,
} from './uploads.ts'

type Context = { db: Db; receiver: Receiver; log: Logger }

/** Receives a piece of content that has room reserved, and completes the upload with its last one. */
export async function receivePiece(
  { db, receiver, log }: Context,
  actor: Actor,
  piece: Piece,
  body: AsyncIterable<Buffer>,
): Promise<UploadView> {
  const { sha256, size } = piece
  const content = { sha256, size }
  let offset: number
  try {
    offset = await receiver.receive(piece, body)
  } catch (error) {
    await settleRoom(db, receiver, actor, content).catch((err) =>
      log.warn({ err }, 'the room of an upload that failed'),
    )
    throw error
  }
  if (offset < size) {
    const room = await settleRoom(db, receiver, actor, content)
    if (!room?.hidden) return findUpload(db, actor, sha256, offset)
    return { ...content, offset, complete: false, expiresAt: room.expiresAt.toISOString() }
  }
  const [upload] = await complete(db, actor, [content])
  await receiver.deleteParts(actor.accountId, [sha256])
  return upload!
}

/** Reserves room again for a partial upload, or discards it. Without one, the room is released. */
async function settleRoom(
  db: Db,
  receiver: Receiver,
  actor: Actor,
  content: Content,
): Promise<UploadReservation | null> {
  const { accountId } = actor
  const { sha256 } = content
  if ((await receiver.offsetOf(accountId, sha256)) === 0) {
    await release(db, actor, sha256, () => receiver.hasPart(accountId, sha256))
    return null
  }
  try {
    return await reserve(db, actor, content)
  } catch (error) {
    if (error instanceof Fault) await receiver.deleteParts(accountId, [sha256])
    throw error
  }
}

/** Stores the files of an archive, outside any transaction. */
export async function storeBatch(
  db: Db,
  receiver: Receiver,
  actor: Actor,
  archive: Buffer | undefined,
): Promise<Content[]> {
  const files = await readBatch(archive)
  const contents = files.map(({ sha256, content }) => ({ sha256, size: content.length }))
  await checkRoom(db, actor, contents)
  await receiver.storeAll(files.map(({ content }) => content))
  return contents
}

/** Completes the uploads of contents that are stored. */
export async function completeBatch(
  db: Db,
  receiver: Receiver,
  actor: Actor,
  contents: readonly Content[],
): Promise<UploadView[]> {
  const uploads = await complete(db, actor, contents)
  // While the transaction still locks the account's uploads, because the deleted rows may have been larger.
  await receiver.deleteParts(
    actor.accountId,
    contents.map(({ sha256 }) => sha256),
  )
  return uploads
}
