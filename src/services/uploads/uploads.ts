// Uploads of an account: quotas, waiting uploads, and starting the deployments that wait for them.
import type { Static } from '@sinclair/typebox'
import { deleteInBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { currentTrace } from '../../platform/observe/tracing.ts'
import type { Upload as UploadSchema } from '../../schemas/uploads.ts'
import { type Actor, inProjectsOf } from '../identity/index.ts'
import { limitOf, quotaFault } from '../quotas/index.ts'
import {
  findSizeConflict,
  listNeeded,
  lockUploads,
  markContentsLost,
  markPresent,
  sumBytes,
  sumUnreserved,
} from './statements.ts'

export type UploadView = Static<typeof UploadSchema>

/** How long an upload waits for its deployment, and a deployment for its next file. */
export const waitMs = 3600_000
/** How long a deployment waits for its last file, however slowly the others arrive. */
export const maxWaitMs = 24 * 3600_000

export type Content = { sha256: string; size: number }

/** Throws if a file exceeds the size limit. */
export async function checkFileSize(db: Db, accountId: string, size: number): Promise<void> {
  const max = await limitOf(db, accountId, 'uploadFileBytes')
  if (size <= max) return
  throw new Fault('body_too_large', `The file has ${size} bytes; the limit is ${max}.`)
}

/** Throws if the account's uploads would exceed the quota. The transaction of `db` must have locked the uploads. */
export async function checkUploadBytes(
  db: Db,
  accountId: string,
  more: number,
  except: readonly string[] = [],
): Promise<void> {
  const max = await limitOf(db, accountId, 'uploadBytes')
  const [sum] = await sumBytes(db, { accountId, except: [...except] })
  const used = Number(sum!.bytes)
  if (used + more > max) throw quotaFault({ limit: 'uploadBytes', used, max })
}

function wrongSize(detail: string): Fault {
  return new Fault('validation_failed', detail, {
    errors: [{ in: 'header', pointer: '#/content-length', code: 'wrong', detail }],
  })
}

/** Throws if a deployment lists another size. For a token limited to projects, only those count. */
async function refuseOtherSizes(db: Db, { accountId, projectIds }: Actor, contents: readonly Content[]): Promise<void> {
  const [other] = await findSizeConflict(db, { accountId, projectIds, contents })
  if (!other) return
  const { deploymentId, sha256, size } = other
  throw wrongSize(`The deployment ${deploymentId} lists ${sha256} with ${size} bytes, which is a different size.`)
}

/** Throws if the account's quota is too small for the contents. Those that a deployment waits for count already. */
async function requireRoom(db: Db, accountId: string, contents: readonly Content[]): Promise<void> {
  const [more] = await sumUnreserved(db, { accountId, contents })
  const hashes = contents.map(({ sha256 }) => sha256)
  if (Number(more!.bytes) > 0) await checkUploadBytes(db, accountId, Number(more!.bytes), hashes)
}

/** Checks the quota for contents that we have received but not stored. */
export async function checkRoom(db: Db, actor: Actor, contents: readonly Content[]): Promise<void> {
  const { accountId } = actor
  await checkFileSize(
    db,
    accountId,
    contents.reduce((max, { size }) => Math.max(max, size), 0),
  )
  await inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    await refuseOtherSizes(db, actor, contents)
    await requireRoom(db, accountId, contents)
  })
}

/** `hidden`: we have the content, but the caller must not learn that before sending all of it. */
export type UploadReservation = { hidden: boolean; expiresAt: Date }

/** Reserves quota for content whose upload starts. Content that we already have keeps its owner. */
export async function reserve(db: Db, actor: Actor, { sha256, size }: Content): Promise<UploadReservation> {
  const { accountId, tokenId } = actor
  await checkFileSize(db, accountId, size)
  return inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    await refuseOtherSizes(db, actor, [{ sha256, size }])
    const now = Date.now()
    const key = { accountId_sha256: { accountId, sha256 } }
    await db.upload.deleteMany({ where: { accountId, sha256, complete: true, expiresAt: { lte: new Date(now) } } })
    const stored = await db.upload.findUnique({ where: key, select: { size: true, complete: true, tokenId: true } })
    const storedSize = Number(stored?.size ?? 0)
    const isComplete = stored?.complete ?? false
    const hidden = isComplete && actor.projectIds !== null && stored?.tokenId !== tokenId
    // Otherwise pieces of a larger size would be kept but counted with the stored size.
    if (isComplete && storedSize !== size) {
      throw wrongSize(hidden ? `The size does not match ${sha256}.` : `The content ${sha256} has ${storedSize} bytes.`)
    }
    await requireRoom(db, accountId, [{ sha256, size }])
    const expiresAt = new Date(now + waitMs)
    await db.upload.upsert({
      where: key,
      create: { accountId, tokenId, sha256, size, complete: false, expiresAt },
      // Earlier pieces may have announced a larger size, which counts as long as they are kept.
      update: isComplete ? { expiresAt } : { tokenId, expiresAt, size: Math.max(size, storedSize) },
    })
    return { hidden, expiresAt }
  })
}

/** Releases the quota of content that did not arrive, unless another request completed it or we have part of it. */
export async function release(
  db: Db,
  { accountId }: Actor,
  sha256: string,
  hasPart: () => Promise<boolean>,
): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    if (!(await hasPart())) await db.upload.deleteMany({ where: { accountId, sha256, complete: false } })
  })
}

/** Records stored contents. Waiting deployments continue; contents that none waits for stay for a while. */
export async function complete(
  db: Db,
  { accountId, tokenId }: Actor,
  contents: readonly Content[],
): Promise<UploadView[]> {
  return inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    const hashes = [...new Set(contents.map(({ sha256 }) => sha256))]
    const awaited = await markPresent(db, { accountId, contents, waitMs, maxMs: maxWaitMs, trace: currentTrace() })
    const needed = new Set(awaited.map(({ sha256 }) => sha256))
    const expiresAt = new Date(Date.now() + waitMs)
    const waiting = contents.filter(({ sha256 }) => !needed.has(sha256))
    // Other uploads may have used the quota since the first check.
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

/** Finds content that the account has uploaded; `received` is how many bytes of incomplete content we have. */
export async function findUpload(db: Db, actor: Actor, sha256: string, received: number): Promise<UploadView> {
  const { accountId } = actor
  const own = actor.projectIds && { tokenId: actor.tokenId }
  const row = await db.upload.findFirst({ where: { accountId, sha256, expiresAt: { gt: new Date() }, ...own } })
  const where = { AND: [inProjectsOf(actor), { sha256, present: true }] }
  const used = row?.complete ? null : await db.sourceFile.findFirst({ where, select: { size: true } })
  if (used) return { sha256, size: Number(used.size), offset: Number(used.size), complete: true, expiresAt: null }
  if (!row) throw new Fault('not_found', `There is no upload ${sha256}.`)
  const size = Number(row.size)
  const offset = row.complete ? size : received
  return { sha256, size, offset, complete: row.complete, expiresAt: row.expiresAt.toISOString() }
}

/** Deletes expired uploads; the sweep of the store deletes their content. */
export function deleteOldUploads(db: Db, signal?: AbortSignal): Promise<number> {
  const where = { expiresAt: { lt: new Date() } }
  return deleteInBatches(signal, (limit) => db.upload.deleteMany({ where, limit }))
}

/** Records that the store has lost contents of any account. Returns whether anybody needed them. */
export async function markLost(db: Db, hashes: readonly string[]): Promise<boolean> {
  const [result] = await markContentsLost(db, { hashes: [...hashes] })
  return result!.files > 0
}

const pageSize = 5_000

/** Calls `onHash` for all content that uploads and deployments of any account need. */
export async function readNeeded(db: Db, signal: AbortSignal, onHash: (sha256: string) => void): Promise<void> {
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const found = await listNeeded(db, { after, limit: pageSize })
    for (const { sha256 } of found) onHash(sha256)
    if (found.length < pageSize) return
    after = found.at(-1)!.sha256
  }
}
