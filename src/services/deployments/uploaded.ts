// Deployments of uploaded files: planned from a list, built once all files have arrived, and ended if they don't.
import type { Static } from '@sinclair/typebox'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { inBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { type FieldError, invalidField } from '../../platform/errors.ts'
import { invalidFields, maxFieldErrors } from '../../platform/fields.ts'
import { pathFaults } from '../../platform/files/source-paths.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { CreateDeployment } from '../../schemas/deployments.ts'
import type { DeploymentSource } from '../../schemas/uploads.ts'
import type { Actor } from '../identity/index.ts'
import { limitOf, quotaFault } from '../quotas/index.ts'
import {
  addFiles,
  checkUploadBytes,
  createSource,
  knownContents,
  listArchive,
  lockUploads,
  type Receiver,
  refuseLarge,
  shareSources,
  spool,
  storeArchive,
  waitMs,
} from '../uploads/index.ts'
import { createDeployment, type DeploymentPlan, type DeploymentView } from './deployments.ts'
import { findProjectToDeploy } from './plans.ts'
import type { UploadedFile } from './sources.ts'
import { appendLogLines } from './statements.ts'
import { finishDeployment } from './states.ts'

export type UploadPlan = Omit<DeploymentPlan, 'ref' | 'commit' | 'source'> & {
  files: UploadedFile[]
  prebuilt: boolean
  /** Content that the client has just sent and that is stored. */
  sent?: ReadonlySet<string>
}

const link = 0o120000
const kindOf = (mode: number) => mode & 0o170000

/** The git file mode; null for anything but a file or link. */
export function gitMode(mode = 0o644): number | null {
  if (kindOf(mode) === link) return link
  if (kindOf(mode) !== 0 && kindOf(mode) !== 0o100000) return null
  return (mode & 0o111) === 0 ? 0o100644 : 0o100755
}

/** Reads the files of a request. Throws all errors in their paths, modes and sizes. */
export async function checkFiles(source: Static<typeof DeploymentSource>): Promise<UploadedFile[]> {
  const errors: FieldError[] = []
  const refuse = (pointer: string, code: FieldError['code'], detail: string) =>
    errors.push({ in: 'body', pointer: `#/source/files/${pointer}`, code, detail })
  const { files } = source
  const paths = files.map(({ path }) => path)
  for (const { index, why, repeated } of await pathFaults(paths, maxFieldErrors)) {
    refuse(`${index}/path`, repeated ? 'repeated' : 'bad_format', why)
  }
  const sizes = new Map<string, number>()
  const checked = files.map(({ path, sha256, size, mode }, index) => {
    const plain = gitMode(mode)
    if (plain === null) refuse(`${index}/mode`, 'not_allowed', 'must be the mode of a file or a symbolic link')
    if ((sizes.get(sha256) ?? size) !== size)
      refuse(`${index}/size`, 'wrong', 'differs from the size given for the same content')
    sizes.set(sha256, size)
    return { path, sha256, size, mode: plain ?? 0 }
  })
  if (errors.length > 0) throw invalidFields(errors.slice(0, maxFieldErrors))
  return checked
}

const contentsOf = (files: readonly UploadedFile[]) => new Map(files.map(({ sha256, size }) => [sha256, size]))
const bytesOf = (contents: ReadonlyMap<string, number>) => [...contents.values()].reduce((sum, size) => sum + size, 0)

type TreeLimit = 'sourceFiles' | 'sourceBytes' | 'uploadFileBytes'

export async function requireWithin(db: Db, accountId: string, limit: TreeLimit, used: number): Promise<void> {
  const max = await limitOf(db, accountId, limit)
  if (used > max) throw quotaFault({ limit, used, max })
}

/** Throws if a tree exceeds the size limit of a deployment. */
export async function checkTree(db: Db, accountId: string, files: readonly UploadedFile[]): Promise<void> {
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  const most = files.reduce((most, { size }) => Math.max(most, size), 0)
  await requireWithin(db, accountId, 'sourceBytes', bytes)
  await requireWithin(db, accountId, 'uploadFileBytes', most)
}

/** Plans a deployment from a list of files. */
export async function planUploaded(
  db: Db,
  region: string,
  actor: Actor,
  input: Static<typeof CreateDeployment> & { source: Static<typeof DeploymentSource> },
): Promise<UploadPlan> {
  const { project: key, ref, production = false, source } = input
  if (ref !== undefined) throw invalidField('#/ref', 'not_allowed', 'needs a repository; uploaded files have no ref')
  const project = await findProjectToDeploy(db, actor, key)
  // Checked first, because checking the files takes longer.
  await requireWithin(db, actor.accountId, 'sourceFiles', source.files.length)
  const files = await checkFiles(source)
  await checkTree(db, actor.accountId, files)
  return { project, production, region, files, prebuilt: source.prebuilt ?? false }
}

export type ArchiveOptions = {
  urls: Urls
  region: string
  artifacts: Artifacts
  receiver: Receiver
  /** Limits concurrent unpacking, which is expensive. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
}

/** `length`: the size of the body; 0 if unknown. */
export type SentArchive = {
  project: string
  production: boolean
  prebuilt: boolean
  length: number
  body: AsyncIterable<Buffer>
}

const takenBack = new Error('a deployment that was only tried')

/** Throws the errors of a deployment with these files, by creating it and rolling back. */
async function tryDeployment(db: Db, urls: Urls, actor: Actor, { files, prebuilt: _, ...planned }: UploadPlan) {
  const { accountId } = actor
  const work = async (db: Db) => {
    await lockUploads(db, { accountId })
    await checkUploadBytes(db, accountId, bytesOf(contentsOf(files)))
    await createDeployment(db, urls, actor, { ...planned, ref: '', commit: '', source: 'upload' })
    throw takenBack
  }
  await inTransaction(db, work).catch((error) => {
    if (error !== takenBack) throw error
  })
}

/** Plans a deployment from an archive. Stores its content outside any transaction, once all of it is checked. */
export async function planArchive(
  db: Db,
  { urls, region, artifacts, receiver, inTurn }: ArchiveOptions,
  actor: Actor,
  { project: key, production, prebuilt, length, body }: SentArchive,
): Promise<UploadPlan> {
  const { accountId } = actor
  const project = await findProjectToDeploy(db, actor, key)
  const [files, bytes, fileBytes] = await Promise.all([
    limitOf(db, accountId, 'sourceFiles'),
    limitOf(db, accountId, 'sourceBytes'),
    limitOf(db, accountId, 'uploadFileBytes'),
  ])
  refuseLarge(length, bytes)
  return receiver.withTempFile(length, async (path, reservation) => {
    await spool(body, path, bytes, reservation)
    return inTurn(async () => {
      const found = await listArchive(path, { files, bytes, fileBytes })
      const plan = { project, production, region, files: found, prebuilt }
      // Checked before storing: content of a refused deployment would count towards nobody's quota.
      await tryDeployment(db, urls, actor, plan)
      await receiver.reserveStored(reservation, bytesOf(contentsOf(found)))
      await storeArchive(artifacts, path)
      return { ...plan, sent: new Set(found.map(({ sha256 }) => sha256)) }
    })
  })
}

// One statement for a long list of files would block others and exceed the statement timeout.
const filesAtOnce = 2_000

function* chunksOf<T>(items: readonly T[]): Generator<T[]> {
  for (let at = 0; at < items.length; at += filesAtOnce) yield items.slice(at, at + filesAtOnce)
}

/** Creates a planned deployment of a commit or of uploaded files. */
export function createPlanned(
  db: Db,
  urls: Urls,
  actor: Actor,
  plan: DeploymentPlan | UploadPlan,
): Promise<DeploymentView> {
  return 'files' in plan ? createUploaded(db, urls, actor, plan) : createDeployment(db, urls, actor, plan)
}

/** Creates the deployment and its files. Queues the build at once if nothing is missing. */
async function createUploaded(db: Db, urls: Urls, actor: Actor, plan: UploadPlan): Promise<DeploymentView> {
  const { files, prebuilt, sent = new Set(), ...planned } = plan
  const { accountId } = actor
  const projectId = planned.project.id
  return inTransaction(db, async (db) => {
    await lockUploads(db, { accountId })
    await shareSources(db, { projectId })
    const contents = contentsOf(files)
    const hashes = [...contents.keys()]
    const found: Awaited<ReturnType<typeof knownContents>> = []
    for (const some of chunksOf(hashes)) {
      const tokenId = actor.projectIds && actor.tokenId
      found.push(...(await knownContents(db, { accountId, projectId, hashes: some, tokenId })))
    }
    const known = new Map(found.map(({ sha256, size }) => [sha256, Number(size)]))
    refuseOtherSizes(files, known)
    const added = new Map([...contents].filter(([sha256]) => !known.has(sha256)))
    await checkUploadBytes(db, accountId, bytesOf(added))
    const isHere = (sha256: string) => known.has(sha256) || sent.has(sha256)
    const listed = files.map((file) => ({ ...file, present: isHere(file.sha256) }))
    const missing = listed.filter(({ present }) => !present)
    const plan = { ...planned, ref: '', commit: '', source: 'upload', waits: missing.length > 0 } as const
    const view = await createDeployment(db, urls, actor, plan)
    // Waiting uploads count towards this deployment from now on.
    const waited = found.reduce((sum, { size, isNew }) => sum + (isNew ? Number(size) : 0), 0)
    const newBytes = String(bytesOf(added) + waited)
    const owner = { deploymentId: view.id, accountId, projectId }
    const row = { ...owner, prebuilt, missing: missing.length, newBytes, waitMs }
    const [made] = await createSource(db, row)
    for (const some of chunksOf(listed)) await addFiles(db, { ...owner, files: some })
    // They now belong to this deployment.
    const taken = found.filter(({ isNew }) => isNew).map(({ sha256 }) => sha256)
    for (const some of chunksOf(taken)) await db.upload.deleteMany({ where: { accountId, sha256: { in: some } } })
    const unsent = [...new Set(missing.map(({ sha256 }) => sha256))].sort()
    if (unsent.length > 0) await sayWaiting(db, view.id, unsent.length)
    const expiresAt = made?.expiresAt ? new Date(made.expiresAt).toISOString() : null
    return { ...view, uploads: { missing: unsent, missingFiles: missing.length, expiresAt } }
  })
}

/** The hash identifies the content, so a size that differs from the stored one is wrong. */
function refuseOtherSizes(files: readonly UploadedFile[], known: ReadonlyMap<string, number>): void {
  const errors = files.flatMap(({ sha256, size }, index): FieldError[] => {
    const right = known.get(sha256) ?? size
    if (right === size) return []
    const detail = `must be ${right} for this content`
    return [{ in: 'body', pointer: `#/source/files/${index}/size`, code: 'wrong', detail }]
  })
  if (errors.length > 0) throw invalidFields(errors.slice(0, maxFieldErrors))
}

async function sayWaiting(db: Db, deploymentId: string, count: number): Promise<void> {
  const text = `Waiting for ${count} ${count === 1 ? 'file' : 'files'} to be uploaded.`
  await appendLogLines(db, {
    deploymentId,
    lines: [{ index: 1, at: new Date(), stream: 'system', step: 'queue', text }],
  })
}

const endedAtOnce = 50

/** Ends deployments whose files did not arrive in time. For the system, so there is no owner check. */
export function endUnfinished(db: Db, urls: Urls, signal?: AbortSignal): Promise<number> {
  return inBatches(signal, async () => {
    const found = await db.deploymentSource.findMany({
      where: { expiresAt: { lt: new Date() }, missing: { gt: 0 }, deployment: { state: 'BUILDING' } },
      select: { deploymentId: true, missing: true },
      take: endedAtOnce,
    })
    for (const { deploymentId, missing } of found) {
      const what = `${missing} ${missing === 1 ? 'file was' : 'files were'}`
      const message = `${what} not uploaded in time. Upload files at most an hour apart.`
      await finishDeployment(db, urls, deploymentId, { to: 'ERROR', code: 'upload_incomplete', message, by: 'system' })
    }
    return { count: found.length, more: found.length === endedAtOnce }
  })
}
