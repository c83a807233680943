// The default branch of a project's repository, as its host last named it: the production branch of most projects.
import type { Project } from '../../generated/client.ts'
import type { Db } from '../../platform/database.ts'

type Known = Pick<Project, 'id' | 'repo' | 'defaultBranch' | 'followsDefaultBranch' | 'productionBranch'>

/** Stores what the host named, and changes `project` alike, which was read before. */
export async function learnDefaultBranch(db: Db, project: Known, defaultBranch: string): Promise<void> {
  if (project.defaultBranch === defaultBranch) return
  // Not if it was linked to another repository meanwhile.
  const where = { id: project.id, repo: project.repo }
  await db.project.updateMany({ where, data: { defaultBranch } })
  await db.project.updateMany({
    where: { ...where, followsDefaultBranch: true },
    data: { productionBranch: defaultBranch },
  })
  project.defaultBranch = defaultBranch
  if (project.followsDefaultBranch) project.productionBranch = defaultBranch
}
