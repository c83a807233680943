// Uploads of an account: what waits, within which limits, and what begins once it has come.
import type { Static } from '@sinclair/typebox'
import { deleteInBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { currentTrace } from '../../platform/observe/tracing.ts'
import type { Upload as UploadSchema } from '../../schemas/uploads.ts'
import { type Actor, inProjectsOf } from '../identity/index.ts'
import { limitOf, quotaFault } from '../quotas/index.ts'
import {
  arrive,
  bytesHeld,
  bytesWithoutRoom,
  forgetContents,
  lockUploads,
  neededContents,
  otherSize,
} from './statements.ts'

export type UploadView = Static<typeof UploadSchema>

/** So long an upload waits for its deployment, and a deployment for its next file. */
export const waitMs = 3600_000
/** However slowly files come, a deployment waits no longer for the last one. */
export const maxWaitMs = 24 * 3600_000

export type Content = { sha256: string; size: number }

/** Refuses what is larger than a file may be. */
export async function checkFileSize(db: Db, accountId: string, size: number): Promise<void> {
  const max = await limitOf(db, accountId, 'uploadFileBytes')
  if (size <= max) return
  throw new Fault('body_too_large', `The file has ${size} bytes; the limit is ${max}.`)
}

/** Refuses more bytes than the account may hold; `db` is the handle of a transaction that has locked its uploads. */
export async function checkBytesHeld(
  db: Db,
  accountId: string,
  more: number,
  except: readonly string[] = [],
): Promise<void> {
  const max = await limitOf(db, accountId, 'uploadBytes')
  const [held] = await bytesHeld(db, { accountId, except: [...except] })
  const used = Number(held!.bytes)
  if (used + more > max) throw quotaFault({ limit: 'uploadBytes', used, max })
}

function wrongSize(detail: string): Fault {
  return new Fault('validation_failed', detail, {
    errors: [{ in: 'header', pointer: '#/content-length', code: 'wrong', detail }],
  })
}

/** A token that is narrowed to projects neither learns what others wait for nor is held up by it. */
async function refuseOtherSizes(db: Db, { accountId, projectIds }: Actor, contents: readonly Content[]): Promise<void> {
  const [other] = await otherSize(db, { accountId, projectIds, contents })
  if (!other) return
  const { deploymentId, sha256, size } = other
  throw wrongSize(`The deployment ${deploymentId} lists ${sha256} with ${size} bytes, which is a different size.`)
}

/** Refuses contents that the account has no room for; what a deployment waits for has its room already. */
async function requireRoom(db: Db, accountId: string, contents: readonly Content[]): Promise<void> {
  const [more] = await bytesWithoutRoom(db, { accountId, contents })
  const hashes = contents.map(({ sha256 }) => sha256)
  if (Number(more!.bytes) > 0) await checkBytesHeld(db, accountId, Number(more!.bytes), hashes)
}

/** Refuses contents that are all here but not stored, if the account has no room for them. */
export async function checkRoom(db: Db, actor: Actor, contents: readonly Content[]): Promise<void> {
  const { accountId } = actor
  await checkFileSize(
    db,
    accountId,
    contents.reduce((most, { size }) => Math.max(most, size), 0),
  )
  await inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    await refuseOtherSizes(db, actor, contents)
    await requireRoom(db, accountId, contents)
  })
}

/** `hidden`: it is here, but the caller may not know that before having sent all of it. */
export type Room = { hidden: boolean; expiresAt: Date }

/** Takes room for content that begins to come. What is here already stays as it is, and whose it is. */
export async function reserve(db: Db, actor: Actor, { sha256, size }: Content): Promise<Room> {
  const { accountId, tokenId } = actor
  await checkFileSize(db, accountId, size)
  return inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    await refuseOtherSizes(db, actor, [{ sha256, size }])
    const now = Date.now()
    const key = { accountId_sha256: { accountId, sha256 } }
    await db.upload.deleteMany({ where: { accountId, sha256, complete: true, expiresAt: { lte: new Date(now) } } })
    const known = await db.upload.findUnique({ where: key, select: { size: true, complete: true, tokenId: true } })
    const knownSize = Number(known?.size ?? 0)
    const isWhole = known?.complete ?? false
    const hidden = isWhole && actor.projectIds !== null && known?.tokenId !== tokenId
    // Pieces that say more would be kept, and count as what is here.
    if (isWhole && knownSize !== size) {
      throw wrongSize(hidden ? `The size does not match ${sha256}.` : `The content ${sha256} has ${knownSize} bytes.`)
    }
    await requireRoom(db, accountId, [{ sha256, size }])
    const expiresAt = new Date(now + waitMs)
    // Pieces that said more may be here.
    const noted = Math.max(size, knownSize)
    await db.upload.upsert({
      where: key,
      create: { accountId, tokenId, sha256, size, complete: false, expiresAt },
      // It counts as long as pieces are kept.
      update: isWhole ? { expiresAt } : { tokenId, expiresAt, size: noted },
    })
    return { hidden, expiresAt }
  })
}

/** Gives the room of content back that did not come, unless it came by another request or some of it is here. */
export async function release(
  db: Db,
  { accountId }: Actor,
  sha256: string,
  isHere: () => Promise<boolean>,
): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    if (!(await isHere())) await db.upload.deleteMany({ where: { accountId, sha256, complete: false } })
  })
}

/** The contents are in the store. Whatever waited for them goes on; what nobody waits for is kept for a while. */
export async function complete(
  db: Db,
  { accountId, tokenId }: Actor,
  contents: readonly Content[],
): Promise<UploadView[]> {
  return inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    const hashes = [...new Set(contents.map(({ sha256 }) => sha256))]
    const came = await arrive(db, { accountId, contents, waitMs, maxMs: maxWaitMs, trace: currentTrace() })
    const needed = new Set(came.map(({ sha256 }) => sha256))
    const expiresAt = new Date(Date.now() + waitMs)
    const waiting = contents.filter(({ sha256 }) => !needed.has(sha256))
    // Others may have taken the room since it was looked for.
    if (waiting.length > 0) await requireRoom(db, accountId, waiting)
    await db.upload.deleteMany({ where: { accountId, sha256: { in: hashes } } })
    await db.upload.createMany({
      data: waiting.map(({ sha256, size }) => ({ accountId, tokenId, sha256, size, complete: true, expiresAt })),
      skipDuplicates: true,
    })
    return contents.map(({ sha256, size }) => ({
      sha256,
      size,
      offset: size,
      complete: true,
      expiresAt: needed.has(sha256) ? null : expiresAt.toISOString(),
    }))
  })
}

/** What is known of content that the account has uploaded; `here` is how much of it has come so far. */
export async function findUpload(db: Db, actor: Actor, sha256: string, here: number): Promise<UploadView> {
  const { accountId } = actor
  const own = actor.projectIds && { tokenId: actor.tokenId }
  const row = await db.upload.findFirst({ where: { accountId, sha256, expiresAt: { gt: new Date() }, ...own } })
  const where = { AND: [inProjectsOf(actor), { sha256, present: true }] }
  const used = row?.complete ? null : await db.sourceFile.findFirst({ where, select: { size: true } })
  if (used) return { sha256, size: Number(used.size), offset: Number(used.size), complete: true, expiresAt: null }
  if (!row) throw new Fault('not_found', `There is no upload ${sha256}.`)
  const size = Number(row.size)
  const offset = row.complete ? size : here
  return { sha256, size, offset, complete: row.complete, expiresAt: row.expiresAt.toISOString() }
}

/** Forgets what nobody needed in time; the sweep of the store removes its content. */
export function forgetOldUploads(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { expiresAt: { lt: new Date() } }
  return deleteInBatches(signal, (limit) => db.upload.deleteMany({ where, limit }))
}

/** Notes that the store has lost contents; whether anybody needed them. Called for the system: there is no owner. */
export async function noteLost(db: Db, hashes: readonly string[]): Promise<boolean> {
  const [noted] = await forgetContents(db, { hashes: [...hashes] })
  return noted!.files > 0
}

const perRead = 5_000

/** Calls `onHash` for all content that uploads and their deployments need. Called for the system: there is no owner. */
export async function readNeeded(db: Db, signal: AbortSignal, onHash: (sha256: string) => void): Promise<void> {
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const found = await neededContents(db, { after, limit: perRead })
    for (const { sha256 } of found) onHash(sha256)
    if (found.length < perRead) return
    after = found.at(-1)!.sha256
  }
}
