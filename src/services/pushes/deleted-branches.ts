// A push that deletes a branch: its builds end, and its previews go later. An old one that is sent again does nothing.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { isRefName } from '../../platform/git/repositories.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { Push, PushResult as PushResultSchema } from '../../schemas/push-hooks.ts'
import { askTimeoutMs, type ClosedBranch, closeBranch, type PlanOptions, reopenBranch } from '../deployments/index.ts'
import { openAccess } from '../projects/index.ts'

type PushBody = Static<typeof Push>
type PushResult = Static<typeof PushResultSchema>

const zeros = /^0+$/

export function deletesBranch({ deleted, after }: PushBody): boolean {
  return deleted === true || zeros.test(after)
}

/** The branch of a push, if it is one. */
function branchIn({ ref }: PushBody): string | null {
  const branch = /^refs\/heads\/(.+)$/s.exec(ref)?.[1]
  return branch !== undefined && isRefName(branch) && branch.isWellFormed() ? branch : null
}

/**
 * Whether the repository has the branch that a push deletes: asked before the transaction. Pushes are remembered for a
 * week; one that is sent again later could end what was pushed since. A host that doesn't answer, or not to us, leaves it
 * at the signature.
 */
export async function isBackAgain(
  db: Db,
  { repositories, vault }: PlanOptions,
  projectId: string,
  push: PushBody,
): Promise<boolean> {
  const branch = deletesBranch(push) ? branchIn(push) : null
  if (branch === null) return false
  const project = await db.project.findUnique({ where: { id: projectId }, select: { repo: true } })
  if (!project) return false
  const access = await openAccess(db, vault, projectId)
  const resolution = await repositories.resolve(project.repo, branch, askTimeoutMs, access)
  return typeof resolution === 'object' && resolution.isBranch
}

export type Undeployed = {
  projectId: string
  push: PushBody
  /** Why it makes no deployment. */
  result: PushResult
  delivery: string
  digest: Uint8Array<ArrayBuffer>
  isBack: boolean
  /** How long previews of a branch that was deleted are kept; null: as long as others. */
  keepHours: number | null
}

/**
 * What a push that makes no deployment does to its branch, once for each push; `db` is the handle of the transaction that
 * has locked the hook.
 */
export async function takeUndeployed(
  db: Db,
  urls: Urls,
  { projectId, push, result, delivery, digest, isBack, keepHours }: Undeployed,
): Promise<PushResult> {
  const ref = branchIn(push)
  if (ref === null) return result
  // The branch is there, whether or not it is built.
  if (result.reason === 'auto_deploy_off') await reopenBranch(db, { projectId, ref })
  if (result.reason !== 'branch_deleted') return result
  if (isBack) {
    return { ...result, detail: `The repository still has the branch ${ref}. Nothing was canceled or deleted.` }
  }
  const known = await db.push.count({ where: { projectId, OR: [{ delivery }, { digest }] } })
  if (known > 0) return { ...result, detail: 'This push was already received.' }
  const closed = await closeBranch(db, urls, { projectId, ref })
  // Without a commit, so that no later push is taken for one that follows it.
  await db.push.create({ data: { projectId, delivery, digest, ref, commit: '', createdAt: new Date() } })
  return { ...result, detail: [result.detail, ...effectsOf(closed, keepHours)].join(' ') }
}

/** What the host is told of it. */
export function effectsOf({ canceled, previews }: ClosedBranch, keepHours: number | null): string[] {
  const builds = `${canceled} ${canceled === 1 ? 'build was' : 'builds were'} canceled`
  const later = `previews are deleted in ${keepHours} ${keepHours === 1 ? 'hour' : 'hours'}.`
  if (previews === 0 || keepHours === null) return canceled > 0 ? [`${builds}.`] : []
  return [canceled > 0 ? `${builds}; its ${later}` : `Its ${later}`]
}
