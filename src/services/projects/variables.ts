// Build-time variables of a project: sealed when they come in, opened only for a build.
import type { Static } from '@sinclair/typebox'
import type { Variable } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import { placeOf, type Vault } from '../../platform/secrets.ts'
import type { PutVariable, Variable as VariableSchema } from '../../schemas/projects.ts'
import { checkQuota } from '../accounts/quotas.ts'
import type { Actor } from '../tokens/actor.ts'
import { findProject, findProjectToChange } from './projects.ts'

export type VariableView = Static<typeof VariableSchema>

function view(row: Variable): VariableView {
  return {
    key: row.key,
    target: row.target as VariableView['target'],
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

export async function listVariables(db: Db, actor: Actor, projectKey: string): Promise<VariableView[]> {
  const project = await findProject(db, actor, projectKey)
  const found = await db.variable.findMany({ where: { projectId: project.id }, orderBy: { key: 'asc' } })
  return found.map(view)
}

export async function putVariable(
  db: Db,
  vault: Vault,
  actor: Actor,
  { projectKey, key, input }: { projectKey: string; key: string; input: Static<typeof PutVariable> },
): Promise<VariableView> {
  return inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, projectKey)
    const others = await db.variable.count({ where: { projectId: project.id, key: { not: key } } })
    await checkQuota(db, actor.accountId, 'variables', others)
    const data = {
      target: input.target ?? 'all',
      sealed: Uint8Array.from(vault.seal(input.value, placeOf.variable(project.id, key))),
      updatedAt: new Date(),
    }
    const row = await db.variable.upsert({
      where: { projectId_key: { projectId: project.id, key } },
      create: { projectId: project.id, key, createdAt: data.updatedAt, ...data },
      update: data,
    })
    return view(row)
  })
}

export async function deleteVariable(db: Db, actor: Actor, projectKey: string, key: string): Promise<void> {
  const project = await findProject(db, actor, projectKey)
  const { count } = await db.variable.deleteMany({ where: { projectId: project.id, key } })
  if (count === 0) throw new Fault('not_found', `The project has no variable ${key}.`)
}
