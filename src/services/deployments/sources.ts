// The uploaded source files of deployments: the missing ones, and those that a worker reads.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import type { Deployment as DeploymentSchema } from '../../schemas/deployments.ts'
import { readFiles, readMissing } from '../uploads/index.ts'

export type MissingView = NonNullable<Static<typeof DeploymentSchema>['uploads']>

// Clients poll during the upload; only the response to the creation lists everything.
const maxMissing = 500

/** The files that a deployment waits for; undefined if it was not uploaded, or has ended. */
export async function missingOf(
  db: Db,
  { id, accountId, source, state }: { id: string; accountId: string; source: string; state: string },
): Promise<MissingView | undefined> {
  if (source !== 'upload' || state !== 'BUILDING') return undefined
  const found = await db.deploymentSource.findUnique({ where: { deploymentId: id } })
  if (!found) return undefined
  const missing = found.missing === 0 ? [] : await readMissing(db, { accountId, deploymentId: id, limit: maxMissing })
  return {
    missing: missing.map(({ sha256 }) => sha256),
    missingFiles: found.missing,
    expiresAt: found.expiresAt?.toISOString() ?? null,
  }
}

/** `mode`: the git file mode. */
export type UploadedFile = { path: string; sha256: string; size: number; mode: number }

const filesAtOnce = 1_000

/** The files of a deployment for its build; null if they are incomplete. For the system, so there is no owner check. */
export async function readUploaded(db: Db, deploymentId: string): Promise<UploadedFile[] | null> {
  const files: UploadedFile[] = []
  for (let after = ''; ; ) {
    const found = await readFiles(db, { deploymentId, after, limit: filesAtOnce })
    if (found.some(({ present }) => !present)) return null
    for (const { path, sha256, size, mode } of found) files.push({ path, sha256, size: Number(size), mode })
    if (found.length < filesAtOnce) break
    after = found.at(-1)!.path
  }
  // Files are deleted only with their source, so if it still exists, all of them were read.
  const isKept = files.length > 0 && (await db.deploymentSource.count({ where: { deploymentId } })) > 0
  return isKept ? files : null
}
