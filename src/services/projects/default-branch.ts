// The default branch of a project's repository, as its host last named it: the production branch of most projects.
import type { Project } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'

type Known = Pick<Project, 'id' | 'repo' | 'defaultBranch' | 'followsDefaultBranch' | 'productionBranch'>

/** Gives `project` the default branch that the host named; returns whether it has to be stored. */
export function followDefaultBranch(project: Known, defaultBranch: string): boolean {
  if (project.defaultBranch === defaultBranch) return false
  project.defaultBranch = defaultBranch
  if (project.followsDefaultBranch) project.productionBranch = defaultBranch
  return true
}

export type NamedBranch = { repo: string; defaultBranch: string }

export async function storeDefaultBranch(db: Db, id: string, { repo, defaultBranch }: NamedBranch): Promise<void> {
  // Not if it was linked to another repository meanwhile.
  const where = { id, repo }
  await db.project.updateMany({ where, data: { defaultBranch } })
  await db.project.updateMany({
    where: { ...where, followsDefaultBranch: true },
    data: { productionBranch: defaultBranch },
  })
}
