// Pushes that delete a branch: its builds are canceled, and its previews are deleted later. Replays have no effect.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { isRefName } from '../../platform/git/repositories.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { Push, PushResult as PushResultSchema } from '../../schemas/push-hooks.ts'
import {
  type ClosedBranch,
  closeBranch,
  type PlanOptions,
  reopenBranch,
  repositoryTimeoutMs,
} from '../deployments/index.ts'
import { openAccess } from '../projects/index.ts'

type PushBody = Static<typeof Push>
type PushResult = Static<typeof PushResultSchema>

const zeros = /^0+$/

export function deletesBranch({ deleted, after }: PushBody): boolean {
  return deleted === true || zeros.test(after)
}

/** The branch of a push; null for a tag or a malformed ref. */
function parseBranch({ ref }: PushBody): string | null {
  const branch = /^refs\/heads\/(.+)$/s.exec(ref)?.[1]
  return branch !== undefined && isRefName(branch) && branch.isWellFormed() ? branch : null
}

/**
 * Whether the repository still has the branch that a push deletes; call it before the transaction. We remember pushes
 * for a week, and a later replay could cancel newer builds. If we can't reach the host, we trust the signature.
 */
export async function isBranchRestored(
  db: Db,
  { repositories, vault }: PlanOptions,
  projectId: string,
  push: PushBody,
): Promise<boolean> {
  const branch = deletesBranch(push) ? parseBranch(push) : null
  if (branch === null) return false
  const project = await db.project.findUnique({ where: { id: projectId }, select: { repo: true } })
  if (!project) return false
  const access = await openAccess(db, vault, projectId)
  const resolution = await repositories.resolve(project.repo, branch, repositoryTimeoutMs, access)
  return typeof resolution === 'object' && resolution.isBranch
}

export type UndeployedPush = {
  projectId: string
  push: PushBody
  /** Why it starts no deployment. */
  result: PushResult
  delivery: string
  digest: Uint8Array<ArrayBuffer>
  isRestored: boolean
  /** Retention of a deleted branch's previews; null: the same as other previews. */
  keepHours: number | null
}

/**
 * Closes or reopens the branch of a push that starts no deployment, once per push. `db` must be in the transaction that
 * has locked the hook.
 */
export async function handleUndeployedPush(
  db: Db,
  urls: Urls,
  { projectId, push, result, delivery, digest, isRestored, keepHours }: UndeployedPush,
): Promise<PushResult> {
  const ref = parseBranch(push)
  if (ref === null) return result
  // The branch exists even if it is not built.
  if (result.reason === 'auto_deploy_off') await reopenBranch(db, { projectId, ref })
  if (result.reason !== 'branch_deleted') return result
  if (isRestored) {
    return { ...result, detail: `The repository still has the branch ${ref}. Nothing was canceled or deleted.` }
  }
  const known = await db.push.count({ where: { projectId, OR: [{ delivery }, { digest }] } })
  if (known > 0) return { ...result, detail: 'This push was already received.' }
  const closed = await closeBranch(db, urls, { projectId, ref })
  // Without a commit, so no later push counts as its successor.
  await db.push.create({ data: { projectId, delivery, digest, ref, commit: '', createdAt: new Date() } })
  return { ...result, detail: [result.detail, ...describeClosedBranch(closed, keepHours)].join(' ') }
}

/** Describes the effects in the response to the repository host. */
export function describeClosedBranch({ canceled, previews }: ClosedBranch, keepHours: number | null): string[] {
  const builds = `${canceled} ${canceled === 1 ? 'build was' : 'builds were'} canceled`
  const later = `previews are deleted in ${keepHours} ${keepHours === 1 ? 'hour' : 'hours'}.`
  if (previews === 0 || keepHours === null) return canceled > 0 ? [`${builds}.`] : []
  return [canceled > 0 ? `${builds}; its ${later}` : `Its ${later}`]
}
