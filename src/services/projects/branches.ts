// The branches of a project: each has a label of its own from its first deployment on.
import type { Db } from '../../platform/database/database.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { branchLabels, isReserved } from './labels.ts'
import { claimBranchLabel, readBranchLabel } from './statements.ts'

export type BranchKey = { projectId: string; ref: string }

/** The label of a branch; null before its first deployment. */
export async function findBranchLabel(db: Db, key: BranchKey): Promise<string | null> {
  const [found] = await readBranchLabel(db, key)
  return found?.label ?? null
}

/** Gives a branch the first label that is free; null if the project is gone. `db` is the handle of a transaction. */
export async function claimBranch(db: Db, urls: Urls, { projectId, ref }: BranchKey): Promise<string | null> {
  const project = await db.project.findUnique({ where: { id: projectId }, select: { accountId: true, label: true } })
  if (!project) return null
  const { accountId } = project
  for (const label of branchLabels(project.label, ref)) {
    if (isReserved(urls, label)) continue
    const claimed = await claimBranchLabel(db, { label, accountId, ref })
    if (claimed.length === 0) continue
    // A conflict raises no error, which would end the transaction.
    const made = await db.branch.createMany({ data: [{ projectId, ref, label }], skipDuplicates: true })
    if (made.count > 0) return label
    // Another deployment of the branch came first; or another project of the account has a branch with this label.
    const found = await findBranchLabel(db, { projectId, ref })
    if (found !== null) return found
  }
  throw new Error('no free label found for a branch')
}

/** The label of a branch, which it gets now if it has none; null if the project is gone. */
export async function labelBranch(db: Db, urls: Urls, key: BranchKey): Promise<string | null> {
  return (await findBranchLabel(db, key)) ?? claimBranch(db, urls, key)
}
