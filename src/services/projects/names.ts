// The names of projects: a project that was renamed is still found by its former ones.
import type { Project } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'

/** Projects are addressed by name or by id; a name holds no underscore, so the two cannot be confused. */
export const isProjectId = (key: string) => key.startsWith('prj_')

/** The condition that a project is meant by the key, by its name or a former one. */
export function withKey(key: string) {
  return isProjectId(key) ? { id: key } : { OR: [{ name: key }, { formerNames: { has: key } }] }
}

/** The project that had the name before: asked only for what is no present name, so that reading by name stays one query. */
export async function formerlyNamed(db: Db, accountId: string, key: string): Promise<string | null> {
  if (isProjectId(key)) return null
  const found = await db.project.findFirst({ where: { accountId, formerNames: { has: key } }, select: { id: true } })
  return found?.id ?? null
}

// Each rename costs a name; what was called otherwise longer ago is forgotten.
const maxFormer = 20

export const takenName = (name: string, by = name) =>
  new Fault(
    'project_exists',
    by === name ? `The account already has a project named ${name}.` : `${name} is a former name of the project ${by}.`,
  )

/** Throws if another project of the account has the name, or had it: what still uses it would reach the wrong one. */
export async function refuseTakenName(db: Db, { id, accountId }: Pick<Project, 'id' | 'accountId'>, name: string) {
  const other = await db.project.findFirst({
    where: { accountId, ...withKey(name), id: { not: id } },
    select: { name: true },
  })
  if (other) throw takenName(name, other.name)
}

/** What a new name changes; nothing if it is the present one. */
export async function renaming(db: Db, project: Project, name: string | undefined) {
  if (name === undefined || name === project.name) return {}
  await refuseTakenName(db, project, name)
  const formerNames = [...project.formerNames.filter((former) => former !== name), project.name].slice(-maxFormer)
  return { name, formerNames }
}
